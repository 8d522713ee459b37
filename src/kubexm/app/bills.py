"""What is wanted, for a cluster file or a version of Kubernetes alone, and where it comes from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from kubexm.app import addon_images, clusters
from kubexm.app.cluster_hosts import MACHINES
from kubexm.app.params import ClusterParams
from kubexm.app.remembered import Facts, stored_facts
from kubexm.common.assets import RegistrySource
from kubexm.common.counting import few
from kubexm.common.secrets import SecretRef, is_reference
from kubexm.config.cluster import Cluster
from kubexm.config.model.container_runtime import RegistryAccessSpec
from kubexm.errors import InvalidInput, Problem, StepFailed
from kubexm.resource import catalog, declared
from kubexm.resource.bundle_gather import Sources
from kubexm.resource.entries import ARCHES, Arch
from kubexm.resource.fetch import Options
from kubexm.resource.http import Login
from kubexm.resource.materials import BillOfMaterials, bill
from kubexm.resource.needs import Needs
from kubexm.resource.registries import Way
from kubexm.resource.s3 import Access
from kubexm.resource.sources import WebSource, parse
from kubexm.runtime.secrets import SecretVault

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
"""Variables that say where buckets are; the first that is set counts."""
_REGISTRIES = "spec.containerRuntime.registries"


class BillParams(msgspec.Struct, frozen=True, kw_only=True):
    """What things are wanted for: a cluster file, or a usual cluster of a version."""

    file: Path | None = None
    kubernetes: str | None = None
    architectures: tuple[Arch, ...] = ()
    """Those of the hosts, unless given."""
    catalogs: tuple[Path, ...] = ()
    allow_literal_secrets: bool = False


class Billed(msgspec.Struct, frozen=True):
    """A bill of materials, and the cluster that it is for, if there is a file."""

    bill: BillOfMaterials
    cluster: Cluster | None = None


def billed(params: BillParams, facts: Facts | None = None, *, is_bundled: bool = False) -> Billed:
    """The bill; `InvalidInput` with all that is wrong with the file, or can't be had.

    `facts`: what hosts have told just now, beside what the store knows of them; `is_bundled`:
    whether it is for a bundle, which has what add-ons run too. Elsewhere that is for the kubelet.
    """
    known = catalog.load(params.catalogs)
    cluster = _cluster(params, known)
    if cluster is not None:
        told = _told(cluster.declared.name, facts or {})
        named = addon_images.named(cluster) if is_bundled else ()
        needs = declared.needs(cluster.declared, told, named_images=named)
    else:
        needs = Needs(kubernetes=params.kubernetes or "", keeps_time=True)
    if params.architectures:
        needs = replace(needs, architectures=params.architectures)
    return Billed(bill(known, needs), cluster)


def granted(params: BillParams) -> list[Problem]:
    """What a bill takes for granted of the hosts."""
    if params.architectures or (cluster := _cluster(params, catalog.load(params.catalogs))) is None:
        return []
    told, members = _told(cluster.declared.name, {}), cluster.declared.members
    unknown = [each.name for each in members if each.arch is None and each.name not in told]
    if not unknown:
        return []
    message = f"the architecture of {few(unknown)} is not known, and taken to be {ARCHES[0]}"
    return [Problem(message, hint="declare it by `arch`, or give all of them by `--arch`")]


def sources(cluster: Cluster | None, vault: SecretVault) -> Sources:
    """Where things come from beside what the catalog says; all that is missing for it at once."""
    options = usual_options()
    if cluster is None:
        return Sources(options=options)
    ways, unusable = registries(declared_registries(cluster), vault)
    if unusable:
        problems = [problem for found in unusable.values() for problem in found]
        message = "images can't be pulled as the file says"
        raise InvalidInput(message, problems=problems, hint="nothing was fetched")
    return Sources(options=options, registries=ways)


def declared_registries(cluster: Cluster) -> dict[str, RegistrySource]:
    """The registries that a file says something of, by their names."""
    given = cluster.declared.spec.container_runtime.registries
    directory = cluster.document.directory or Path()
    return {name: _source(access, directory) for name, access in given.items()}


def registries(
    given: Mapping[str, RegistrySource], vault: SecretVault
) -> tuple[dict[str, Way], dict[str, list[Problem]]]:
    """How registries are reached, by their names; and those that kubexm itself can't reach so."""
    unusable = {name: [*_unusable(name, source, vault)] for name, source in given.items()}
    ways = {name: _way(given[name], vault) for name, found in unusable.items() if not found}
    return ways, {name: found for name, found in unusable.items() if found}


def usual_options() -> Options:
    """How files are fetched, by what the environment says."""
    return Options(buckets={"*": _buckets(os.environ)})


def unlocked(wanted: BillOfMaterials) -> list[str]:
    """The components of which the catalog does not say what their files have to be."""
    found = (file for file in wanted.binaries if not file.sha256)
    return sorted({f"{file.component} {file.version}" for file in found})


def _cluster(params: BillParams, known: catalog.Catalog) -> Cluster | None:
    if (params.file is None) == (params.kubernetes is None):
        found = "neither" if params.file is None else "both"
        message = f"found {found} of `--file` and `--kubernetes`, want one of them"
        raise InvalidInput(message, hint="name a cluster file, or a version such as `v1.36.3`")
    if params.file is None:
        return None
    cluster = ClusterParams(params.file, params.allow_literal_secrets, params.catalogs)
    return clusters.read(cluster, known)


def _told(name: str, facts: Facts) -> Mapping[str, Arch]:
    """The architectures that hosts told, just now or in earlier runs."""
    known = {MACHINES[arch]: arch for arch in ARCHES}
    stored, _ = stored_facts(name)
    both = {host: each.facts for host, each in stored.items()} | {**facts}
    told = {host: str(each.get("arch", "")) for host, each in both.items()}
    return {host: known[machine] for host, machine in told.items() if machine in known}


def _buckets(environment: Mapping[str, str]) -> Access:
    """Where buckets are and who we are there, by the variables that other tools know too."""
    endpoint = next((environment[name] for name in _ENDPOINTS if environment.get(name)), "")
    return Access(
        endpoint=endpoint,
        region=environment.get("AWS_REGION") or Access().region,
        access_key=environment.get("AWS_ACCESS_KEY_ID", ""),
        secret_key=environment.get("AWS_SECRET_ACCESS_KEY", ""),
        session_token=environment.get("AWS_SESSION_TOKEN", ""),
        fault="; ".join(_faults(environment)),
    )


def _faults(environment: Mapping[str, str]) -> Iterator[str]:
    """What of these variables no request can hold; they are not shown, they may be secret."""
    for name in _ENDPOINTS:
        if (endpoint := environment.get(name)) and not _is_address(endpoint):
            yield f"`{name}` is no address such as `https://minio.lan:9000`"
    for name in ("AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SESSION_TOKEN"):
        text = environment.get(name, "")
        if not (text.isascii() and text.isprintable()):
            yield f"`{name}` has characters that it can't have"


def _is_address(text: str) -> bool:
    try:
        source = parse(text)
    except InvalidInput:
        return False
    return isinstance(source, WebSource) and "?" not in text and text.isascii()


def _source(access: RegistryAccessSpec, directory: Path) -> RegistrySource:
    return RegistrySource(
        mirrors=access.mirrors,
        ca=str((directory / access.ca).absolute()) if access.ca else "",
        insecure=access.insecure,
        plain_http=access.plain_http,
        username=access.auth.username if access.auth else "",
        password=access.auth.password if access.auth else "",
    )


def _unusable(name: str, source: RegistrySource, vault: SecretVault) -> Iterator[Problem]:
    where = f"{_REGISTRIES}.{name}"
    if source.insecure:
        message = "kubexm itself believes no certificate that it can't check"
        yield Problem(message, f"{where}.insecure", "give the `ca` of the registry")
    if source.password:
        try:
            _revealed(source.password, vault)
        except StepFailed as error:
            yield Problem(error.message, f"{where}.auth.password", error.hint)


def _way(source: RegistrySource, vault: SecretVault) -> Way:
    login = None
    if source.password:
        login = Login(source.username, _revealed(source.password, vault))
    return Way(
        mirrors=source.mirrors,
        ca_file=Path(source.ca) if source.ca else None,
        plain_http=source.plain_http,
        login=login,
    )


def _revealed(password: str, vault: SecretVault) -> str:
    """A password; who allows it may have written it out."""
    return vault.reveal(SecretRef(password)) if is_reference(password) else password
