"""Steps about the objects of a cluster, as they are written down."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from hashlib import sha256
from typing import Any

from kubexm.document import foreign
from kubexm.errors import StepFailed
from kubexm.runner import files, kubectl, priors
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.kubectl import Object
from kubexm.runner.priors import Prior
from kubexm.runtime.contexts import StepContext
from kubexm.step import objects
from kubexm.step.contract import Step, Values, Verdict
from kubexm.step.objects import Settings
from kubexm.step.parameters import require_names, require_one
from kubexm.step.registry import step
from kubexm.templates import formats, render
from kubexm.templates.context import Format

_FORM: Format = "manifests"
_SILENT = "the API server does not answer"
_START = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_OF_THE_SERVER = ("managedFields", "resourceVersion", "uid", "creationTimestamp", "generation")
"""What a server says of an object, and nobody else may."""


@step("manifest")
class Applied(Step):
    """The objects of a manifest are in the cluster as it has them.

    Whoever else sets the same fields loses; fields that it does not name are left alone, and so are
    objects that it does not name any more. Nothing is left on the host.

    ```yaml
    - name: settings
      retry: {attempts: 5, delay: 5s}
      manifest:
        name: shop
        content: |
          apiVersion: v1
          kind: ConfigMap
          metadata: {name: shop, namespace: default}
          data: {colour: blue}
    ```
    """

    name: str
    """What the objects together are called."""
    template: str | None = None
    """The name of a template that comes with the program."""
    text: str | None = None
    """The template itself, in Jinja; give this, `template` or `content`."""
    content: str | None = None
    """The objects as they are, as one or more YAML documents."""
    data: dict[str, Any] = field(default_factory=dict)
    """What the template may use, by name."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """By `Kind` or `Kind/name` single values that win over what is written there."""
    namespace: str = ""
    """Where objects go that name no namespace; the default one unless given."""
    secret: bool = False
    """Never show what differs; always so if a secret value is in it."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    takes_secrets = ("data", "text", "content")

    def __post_init__(self) -> None:
        require_names((self.name,), "manifest")
        require_one(template=self.template, text=self.text, content=self.content)

    def summary(self) -> str:
        return f"objects of {self.name}"

    @classmethod
    def with_secret(cls, params: Values) -> Values:
        return {**params, "secret": True}

    async def precheck(self, ctx: StepContext) -> Verdict:
        objects = self.manifests()
        found = await kubectl.difference(ctx.host, objects, self.namespace, sudo=self.sudo)
        if found is None:
            return Verdict.needed("the cluster does not have them", "+")
        diff = "" if self.secret else found
        return Verdict.needed("objects differ", "~", diff) if found else Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        await _applied(ctx, self.resources[0], self.manifests(), self.sudo, self.namespace)

    async def rollback(self, ctx: StepContext) -> str | None:
        return await _taken_back(ctx, self.resources[0], self.sudo, self.namespace)

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"manifest:{self.name}",)

    def manifests(self) -> str:
        """The objects as they are wanted."""
        if self.content is not None:
            # What is no template may have braces of its own.
            return render.merged("{{ content }}", {"content": self.content}, self.overrides, _FORM)
        text = self.text if self.template is None else render.source(self.template)
        what = "template text" if self.template is None else f"template `{self.template}`"
        return render.merged(text or "", self.data, self.overrides, _FORM, what=what)


@step("manifest-file")
class AppliedFile(Step):
    """The objects of a file of the catalog are in the cluster, with some settings otherwise.

    The host keeps a record of the file and its settings; where they differ from it, or `resource`
    is not there, all of it is applied again.

    ```yaml
    - name: calico
      retry: {attempts: 5, delay: 5s}
      manifest-file:
        name: calico
        artifact: calico/v3.32.1/manifest/
        resource: daemonset/calico-node
        environment: {calico-node: {CALICO_IPV4POOL_CIDR: 10.244.0.0/16}}
        config: {calico-config: {veth_mtu: "1440"}}
    ```
    """

    name: str
    """What the objects together are called."""
    artifact: str
    """What the catalog calls the file: component, version, name and architecture."""
    resource: str
    """One of its objects, such as `daemonset/NAME`, by which it is seen that they are there."""
    namespace: str = "kube-system"
    """Where that one is."""
    value: str = ""
    """The value that an `artifact` step leaves when it has the file; without one, the store has
    it already."""
    sha256: str = ""
    """The checksum that the file has to have, if it is known."""
    images: dict[str, str] = field(default_factory=dict)
    """By the images that the file names those that hosts are to pull; if any, then all of them."""
    environment: dict[str, dict[str, str | None]] = field(default_factory=dict)
    """By container its environment variables; `null` takes one away."""
    unprobed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By container words to leave out of the commands that say whether it is well."""
    config: dict[str, dict[str, str]] = field(default_factory=dict)
    """By config map texts under keys that it has."""
    ipam: dict[str, Any] = field(default_factory=dict)
    """Settings for who gives addresses to pods, in the `cni_network_config` of a config map."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def __post_init__(self) -> None:
        require_names((self.name,), "manifest")
        require_names((self.namespace, self.resource), "resource")
        if "/" in self.name:
            raise ValueError(f"`name` is `{self.name}`, want one without `/`")

    def summary(self) -> str:
        return f"objects of {self.artifact.strip('/')}"

    def needs(self) -> tuple[str, ...]:
        return (self.value,) if self.value else ()

    def probe(self, host: Host) -> Sequence[Command]:
        return (
            files.content_command(host, self._record(host), 64, sudo=self.sudo),
            kubectl.name_command(host, self.resource, self.namespace, sudo=self.sudo),
        )

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        if not kubectl.is_there(answers[1]):
            return Verdict.needed(f"{self.resource} does not exist", "+")
        if files.content(answers[0], self.name).decode() == self._digest:
            return Verdict.holds()
        return Verdict.needed("the file or its settings were changed")

    async def run(self, ctx: StepContext) -> None:
        manifests = await asyncio.to_thread(self._manifests, ctx)
        await _applied(ctx, self.resources[0], manifests, self.sudo)
        record = self._record(ctx.host)
        await files.make_directory(ctx.host, record.rpartition("/")[0], mode=0o700, sudo=self.sudo)
        await files.write(ctx.host, record, self._digest.encode(), mode=0o600, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> str | None:
        await files.remove(ctx.host, self._record(ctx.host), sudo=self.sudo)
        return await _taken_back(ctx, self.resources[0], self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"manifest:{self.name}",)

    def _manifests(self, ctx: StepContext) -> str:
        digest = ctx.assets.digest(self.artifact)
        if digest is None:
            raise StepFailed(
                f"`{self.artifact}` is not in the store",
                hint="have it fetched by an `artifact` step before this one",
            )
        found = ctx.assets.path(digest).read_text(encoding="utf-8")
        documents = formats.parsed(found, _FORM)
        objects.changed(documents, self._settings)
        return formats.written(documents, _FORM)

    @property
    def _settings(self) -> Settings:
        return Settings(self.images, self.environment, self.unprobed, self.config, self.ipam)

    @property
    def _digest(self) -> str:
        """Changes when the file does, or what is to be otherwise in it."""
        settings = (self.images, self.environment, self.unprobed, self.config, self.ipam)
        told = json.dumps([self.artifact, self.sha256, *settings], sort_keys=True)
        return sha256(told.encode()).hexdigest()

    def _record(self, host: Host) -> str:
        return f"{host.state_dir}/records/manifest-{self.name}.sha256"


async def _applied(
    ctx: StepContext, resource: str, manifests: str, sudo: bool | None, namespace: str = ""
) -> None:
    await ctx.ledger.capture(resource, partial(_prior, ctx, manifests, namespace, sudo))
    await kubectl.apply(ctx.host, manifests, namespace, sudo=sudo)


async def _prior(
    ctx: StepContext, manifests: str, namespace: str, sudo: bool | None, copy: str
) -> Prior:
    """The objects that were there, and those that were not; some may be nobody's business."""
    before = await kubectl.existing(ctx.host, manifests, namespace, sudo=sudo)
    known = {_name(found) for found in before}
    new = [_bare(one) for one in _named_in(manifests) if _name(one) not in known]
    both = {"old": [_own(found) for found in before], "new": new}
    return await priors.untold(ctx.host, copy, both, sudo=sudo)


async def _taken_back(
    ctx: StepContext, resource: str, sudo: bool | None, namespace: str = ""
) -> str | None:
    if (prior := ctx.ledger.recall(resource)) is None:
        return None
    told = await priors.told(ctx.host, prior, sudo=sudo)
    try:
        if told["new"]:
            gone = formats.written(told["new"], _FORM)
            await kubectl.delete(ctx.host, gone, namespace, sudo=sudo)
        if told["old"]:
            await kubectl.apply(ctx.host, formats.written(told["old"], _FORM), sudo=sudo)
    except StepFailed as error:
        if kubectl.is_silent(error):
            return _SILENT
        raise
    return None


def _named_in(manifests: str) -> Iterator[Object]:
    """The objects of manifests that others may have written: only their names have to be clear."""
    for part in _START.split(manifests):
        if any(line.strip() and not line.startswith("#") for line in part.split("\n")):
            yield from _each(foreign.parse(part).data)


def _each(found: Object) -> Iterator[Object]:
    """An object, or those of a list, which has no name itself."""
    items = found.get("items") if str(found.get("kind", "")).endswith("List") else None
    if not isinstance(items, list):
        yield found
        return
    for one in items:
        yield from _each(one)


def _name(found: Object) -> tuple[str, str, str]:
    """What tells an object from others; who says no namespace means the default one."""
    metadata = found["metadata"]
    namespace = metadata.get("namespace", "default")
    return found["kind"], "" if namespace == "default" else namespace, metadata["name"]


def _bare(wanted: Object) -> Object:
    """Enough of an object to name it."""
    names = {
        key: value for key, value in wanted["metadata"].items() if key in ("name", "namespace")
    }
    return {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"], "metadata": names}


def _own(found: Object) -> dict[str, Any]:
    """An object without what only its server says of it."""
    metadata: Mapping[str, Any] = found["metadata"]
    kept = {key: value for key, value in metadata.items() if key not in _OF_THE_SERVER}
    return {**{key: value for key, value in found.items() if key != "status"}, "metadata": kept}
