"""What a cluster file names beside itself, judged with the file: hooks, files, templates, images.

All of it is a rule like those between keys, so that a mistake elsewhere hides none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from kubexm.app import contents
from kubexm.app.addon_images import objects
from kubexm.app.cluster_hosts import named_host
from kubexm.app.contents import Judge
from kubexm.config.model.addons import AddonSpec
from kubexm.config.rules.rule import Declared, Rule
from kubexm.document.findings import Finding
from kubexm.document.source import DataPath, Document
from kubexm.errors import InvalidInput, InvalidPipeline, Problem
from kubexm.pipeline.whole import MODULES
from kubexm.resource import images
from kubexm.spec.hooks import plan_hooks, unknown_parts
from kubexm.task.chart_files import chart_version
from kubexm.task.control_plane import patch_kind
from kubexm.task.operator_files import OperatorFiles
from kubexm.templates import formats, overlays

HOOKS: DataPath = ("spec", "hooks")
TEMPLATES: DataPath = ("spec", "templates")
_ADDONS: DataPath = ("spec", "addons")
_SANDBOX: DataPath = ("spec", "containerRuntime", "sandboxImage")
_REGISTRIES: DataPath = ("spec", "containerRuntime", "registries")
_REPOSITORY: DataPath = ("spec", "kubernetes", "imageRepository")
_AUDIT: DataPath = ("spec", "kubernetes", "apiServer", "audit")
_PATCHES: DataPath = ("spec", "kubernetes", "kubeadm", "patches")
_AUTHORITIES: DataPath = ("spec", "kubernetes", "certificates", "authorities")
_EXTERNAL: DataPath = ("spec", "etcd", "external")
_OBJECTS = "write objects with `apiVersion` and `kind`, with `---` between two"
_NAME = "write `metadata: {name: …}`: what is applied again has a name, and no `generateName`"

_BY_HOOK = (
    "lay it by a hook of `add-ons`: `kubectl apply --server-side -f -`, with the object"
    " as `secretStdin: file:///PATH`"
)


class Named:
    """What a document names; what is wrong in other files is kept with their own places."""

    def __init__(
        self,
        document: Document,
        templates: Path | None = None,
        *,
        allow_literal_secrets: bool = False,
    ) -> None:
        """`templates`: where those of the operator lie, if that is not for the file to say."""
        self._document = document
        self._given = templates
        self._allow = allow_literal_secrets
        self._files = OperatorFiles(document.directory)
        self.problems: list[Problem] = []
        """What has a place already, such as a line of a template."""

    def rules(self) -> tuple[Rule, ...]:
        """All that has to hold for it."""
        hosts = (("spec", "hosts"), ("spec", "roleGroups"))
        return (
            Rule("hooks-of-modules", (HOOKS,), self._modules),
            Rule("hooks", (HOOKS, *hosts), self._hooks),
            Rule("templates", (TEMPLATES,), self._templates),
            Rule("sandbox-image", (_SANDBOX,), _sandbox_image),
            Rule("image-repository", (_REPOSITORY,), _image_repository),
            Rule("addon-objects", (_ADDONS,), self._inline),
            Rule("addon-files", (_ADDONS,), self._addons),
            Rule("audit-policy", (_AUDIT,), self._audit),
            Rule("patches", (_PATCHES,), self._patches),
            Rule("authorities", (_AUTHORITIES,), self._authorities),
            Rule("external-etcd-files", (_EXTERNAL,), self._external),
            Rule("registry-authorities", (_REGISTRIES,), self._registries),
        )

    def _modules(self, _: Declared) -> Iterator[Finding]:
        yield from unknown_parts(self._document, HOOKS, MODULES)

    def _hooks(self, cluster: Declared) -> Iterator[Finding]:
        hosts = [named_host(member) for member in cluster.members]
        try:
            plan_hooks(self._document, HOOKS, hosts, allow_literal_secrets=self._allow)
        except InvalidPipeline as error:
            self.problems += error.problems
        yield from ()

    def _templates(self, cluster: Declared) -> Iterator[Finding]:
        written = cluster.spec.templates
        try:
            directory = self._given or (self._files.path(written) if written else None)
            if directory is not None:
                overlays.read(directory)
        except InvalidInput as error:
            self.problems += error.problems or self._of_given(error)
            if not error.problems and self._given is None:
                yield Finding(TEMPLATES, error.message, error.hint)

    def _of_given(self, error: InvalidInput) -> list[Problem]:
        """What is wrong with a directory that the file does not name."""
        return [] if self._given is None else [Problem(error.message, "--templates", error.hint)]

    def _addons(self, cluster: Declared) -> Iterator[Finding]:
        for number, addon in enumerate(cluster.spec.addons):
            yield from self._addon(addon, (*_ADDONS, number))
        yield from self._noted()

    def _inline(self, cluster: Declared) -> Iterator[Finding]:
        for number, addon in enumerate(cluster.spec.addons):
            if addon.inline is not None:
                yield from self._of_objects(addon.inline, (*_ADDONS, number, "inline"))

    def _of_objects(self, text: str, place: DataPath, said: str = "found ") -> Iterator[Finding]:
        if found := _not_yaml(text, place, said):
            yield from found
            return
        yield from _nameless(text, place)
        if not self._allow:
            yield from _secrets(text, place)

    def _addon(self, addon: AddonSpec, place: DataPath) -> Iterator[Finding]:
        for at, path in enumerate(addon.manifests or ()):
            here = (*place, "manifests", at)
            text = self._files.text(path, here)
            yield from self._of_objects(text, here, f"`{path}` has ")
        if (chart := addon.chart) is None:
            return
        here = (*place, "chart")
        for at, path in enumerate(chart.values_files):
            self._files.data(path, (*here, "valuesFiles", at))
        if chart.repository is None and self._files.digest(chart.name, (*here, "name")):
            file = self._files.path(chart.name)
            if chart.version is None:
                chart_version(file, self._files, (*here, "name"))

    def _audit(self, cluster: Declared) -> Iterator[Finding]:
        audit = cluster.spec.kubernetes.api_server.audit
        if audit.enabled and audit.policy is not None:
            self._look(audit.policy, (*_AUDIT, "policy"), contents.policy)
        yield from self._noted()

    def _patches(self, cluster: Declared) -> Iterator[Finding]:
        for target, path in cluster.spec.kubernetes.kubeadm.patches.items():
            kind = patch_kind(path).removeprefix("+")
            judge = partial(contents.patch, kind=kind, target=target)
            self._look(path, (*_PATCHES, target), judge)
        yield from self._noted()

    def _authorities(self, cluster: Declared) -> Iterator[Finding]:
        found = cluster.spec.kubernetes.certificates.authorities
        for name, field in found.fields().items():
            if (one := getattr(found, name)) is not None:
                place = (*_AUTHORITIES, field.alias, "certificate")
                self._look(one.certificate, place, contents.certificates)
        yield from self._noted()

    def _external(self, cluster: Declared) -> Iterator[Finding]:
        if (given := cluster.spec.etcd.external) is not None:
            self._look(given.ca, (*_EXTERNAL, "ca"), contents.certificates)
            self._look(given.certificate, (*_EXTERNAL, "certificate"), contents.certificates)
        yield from self._noted()

    def _registries(self, cluster: Declared) -> Iterator[Finding]:
        for host, access in cluster.spec.container_runtime.registries.items():
            if access.ca is not None:
                self._look(access.ca, (*_REGISTRIES, host, "ca"), contents.certificates)
        yield from self._noted()

    def _look(self, written: str, place: DataPath, judge: Judge) -> None:
        """See what a file holds, if it can be read at all."""
        known = len(self._files.findings)
        text = self._files.text(written, place)
        try:
            if len(self._files.findings) == known:
                judge(text)
        except InvalidInput as error:
            self._files.note(place, f"`{written}` holds {error.message}", error.hint)

    def _noted(self) -> Iterator[Finding]:
        """What the files have turned out to be, once."""
        yield from self._files.findings
        self._files.findings.clear()


def _sandbox_image(cluster: Declared) -> Iterator[Finding]:
    if (written := cluster.spec.container_runtime.sandbox_image) is not None:
        yield from _no_image(written, _SANDBOX)


def _image_repository(cluster: Declared) -> Iterator[Finding]:
    if (written := cluster.spec.kubernetes.image_repository) is not None:
        for finding in _no_image(f"{written}/pause:1", _REPOSITORY):
            message = f"`{written}` is no place of images"
            yield Finding(finding.path, message, "write it as `registry/folder`, without a tag")


def _no_image(text: str, place: DataPath) -> Iterator[Finding]:
    try:
        images.parse(text)
    except InvalidInput as error:
        details = "; ".join(problem.message for problem in error.problems)
        yield Finding(place, f"{error.message}: {details}", error.hint)


def _not_yaml(text: str, place: DataPath, said: str = "found ") -> list[Finding]:
    """Why manifests are none; a file that can't be read has none, and is told by itself."""
    try:
        formats.parsed(text, "manifests")
    except InvalidInput as error:
        line = f" in {error.where}" if error.where else ""
        message = f"{said}no objects of a cluster{line}: {error.message}"
        return [Finding(place, message, error.hint or _OBJECTS)]
    return []


def _nameless(text: str, place: DataPath) -> Iterator[Finding]:
    """Objects that do not say what they are, or what they are called."""
    for at, one in enumerate(objects(formats.parsed(text, "manifests")), 1):
        if missing := [key for key in ("apiVersion", "kind") if not isinstance(one.get(key), str)]:
            lacking = " and ".join(f"`{key}`" for key in missing)
            yield Finding(place, f"object {at} has no {lacking}", _OBJECTS)
        elif not _is_named(one):
            yield Finding(place, f"object {at}, a {one['kind']}, has no `metadata.name`", _NAME)


def _secrets(text: str, place: DataPath) -> Iterator[Finding]:
    """Objects with a secret in them: the plan, which is kept, would have it as it is."""
    for at, one in enumerate(objects(formats.parsed(text, "manifests")), 1):
        if one.get("kind") != "Secret":
            continue
        for key in ("data", "stringData"):
            values = one.get(key)
            if isinstance(values, Mapping) and any(values.values()):
                message = f"object {at}, a Secret, has values written out under `{key}`"
                yield Finding(place, message, _BY_HOOK)


def _is_named(one: Mapping[str, Any]) -> bool:
    metadata = one.get("metadata")
    return isinstance(metadata, Mapping) and bool(metadata.get("name"))
