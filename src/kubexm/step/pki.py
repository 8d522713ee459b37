"""Steps about the certificates of a cluster: who issues, what each host has, the key of etcd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import msgspec

from kubexm.common import layout
from kubexm.common.threads import in_thread
from kubexm.errors import InvalidInput, Refused, StepFailed
from kubexm.pki import authorities, encryption, found, issue, kept, keys, renewal
from kubexm.pki.authorities import Authority
from kubexm.pki.certificates import AUTHORITIES, CertificateRow
from kubexm.pki.cluster import SECRET, File
from kubexm.pki.encryption import Encryption, Provider
from kubexm.pki.found import Found
from kubexm.pki.kept import Kept, Making
from kubexm.pki.keys import Algorithm
from kubexm.pki.request import Host as Holder
from kubexm.pki.request import Issuing
from kubexm.plan.node import Key
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step import filesets
from kubexm.step.contract import Minter, Outcome, Step, Verdict
from kubexm.step.parameters import BadParameter, require_absolute, require_references
from kubexm.step.registry import step

VALUE = "authorities"
"""The name of the value with all that is needed to issue certificates."""


@step("authorities")
class Authorities(Minter):
    """The authorities of a cluster are on the host, and known, because something needs them.

    What is there stays. What is missing is taken from what is supplied, or else made.

    ```yaml
    - name: authorities
      runOnOneOf: [control-node]
      authorities: {algorithm: ECDSA-P256}
    ```
    """

    algorithm: Algorithm = keys.DEFAULT
    """The kind of keys that are made."""
    lifetime: float = issue.AUTHORITY_LIFETIME.total_seconds()
    """Seconds that an authority is good for that is made."""
    supplied: dict[str, str] = field(default_factory=dict)
    """Certificates of yours as PEM, in place of those that would be made: `ca`, `front-proxy-ca`,
    `etcd/ca`."""
    supplied_keys: dict[str, str] = field(default_factory=dict)
    """References to their keys, by the same names."""
    etcd: bool = True
    """Whether there is an authority for etcd."""
    encryption: bool = False
    """Whether there is a key for what lies in etcd."""
    directory: str = layout.PKI
    """Where they are: an absolute path."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(directory=self.directory)
        named = {f"supplied_keys.{name}": uri for name, uri in self.supplied_keys.items()}
        require_references(**named)
        known = {row.name for row in AUTHORITIES}
        for name in (*self.supplied, *self.supplied_keys):
            if name not in known or (name in self.supplied) != (name in self.supplied_keys):
                message = f"`{name}` is no authority with a certificate and a key"
                hint = f"give both, for one of {', '.join(sorted(known))}"
                raise BadParameter(message, hint)

    def summary(self) -> str:
        return f"authorities in {self.directory}"

    def provides(self) -> tuple[Key, ...]:
        return (Key(VALUE, secret=True),)

    def writes(self) -> tuple[str, ...]:
        return tuple(f"{self.directory}/{path}" for path in kept.paths(self._making()))

    async def precheck(self, ctx: StepContext) -> Verdict:
        return Verdict.needed("are asked for when a host needs certificates")

    async def run(self, ctx: StepContext) -> Outcome:
        looked = (*self.writes(), layout.ENCRYPTION_CONFIG)
        there = await filesets.read(ctx.host, looked, sudo=self.sudo)
        secret = {name: ctx.reveal(uri) for name, uri in self.supplied_keys.items()}
        held = await in_thread(self._completed, there, secret)
        wanted = {f"{self.directory}/{path}": file for path, file in kept.files(held).items()}
        made = {path: wanted[path] for path in self.writes() if path in wanted.keys() - there}
        await filesets.write(ctx, made, sudo=self.sudo)
        return Outcome(changed=bool(made), values={VALUE: held.value()})

    async def rollback(self, ctx: StepContext) -> None:
        await filesets.restore(ctx, self.writes(), sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return filesets.resources(self.writes())

    def _completed(self, there: Mapping[str, bytes], secret: Mapping[str, str]) -> Kept:
        making = self._making()
        given = {
            name: _given(name, certificate, secret[name], making.now)
            for name, certificate in self.supplied.items()
        }
        config = there.get(layout.ENCRYPTION_CONFIG)
        return kept.completed(filesets.below(self.directory, there), given, making, config)

    def _making(self) -> Making:
        return Making(
            now=_now(),
            lifetime=timedelta(seconds=self.lifetime),
            algorithm=self.algorithm,
            etcd=self.etcd,
            encryption=self.encryption,
        )


@step("certificates")
class Certificates(Step):
    """All certificates, keys and kubeconfigs of a host are there, and good for some time.

    Only what is missing, faulty or due is made again.

    ```yaml
    - name: authorities
      runOnOneOf: [control-node]
      authorities: {}
    - name: certificates
      certificates:
        host:
          names: {host: "${host.name}", addresses: ["${host.address}"]}
          roles: [etcd]
    ```
    """

    host: dict[str, Any]
    """What they are made for: `names`, with `host`, `addresses`, `services`, `domain`, `endpoints`
    and `extra`; `roles`; `endpoint` and `own`, the URLs of the API; `without`, the names of
    certificates and authorities that this host does not get."""
    cluster: str = "kubernetes"
    """What kubeconfigs call the cluster."""
    lifetime: float = issue.LIFETIME.total_seconds()
    """Seconds that a certificate is good for."""
    algorithm: Algorithm = keys.DEFAULT
    """The kind of keys that are made."""
    directory: str = layout.PKI
    """Where certificates and keys are: an absolute path."""
    kubeconfigs: str = layout.KUBERNETES
    """Where kubeconfigs are: an absolute path."""
    only: tuple[str, ...] = ()
    """Names of the certificates that are wanted; all that such a host has unless given."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(directory=self.directory, kubeconfigs=self.kubeconfigs)
        try:
            msgspec.convert(self.host, Holder)
        except msgspec.ValidationError as error:
            hint = "give its `names` and `roles`"
            raise BadParameter(f"`host` can't be used: {error}", hint) from None

    @classmethod
    def of(cls, holder: Holder, **settings: Any) -> Certificates:
        """The step for a host as its certificates see it; the same data whenever it is planned."""
        data = msgspec.json.encode(holder, order="deterministic")
        return cls(msgspec.json.decode(data), **settings)

    def summary(self) -> str:
        return f"certificates in {self.directory}"

    def needs(self) -> tuple[str, ...]:
        return (VALUE,)

    def writes(self) -> tuple[str, ...]:
        pki = (f"{self.directory}/{path}" for path in found.pki_paths(self._holder, self._rows))
        configs = (f"{self.kubeconfigs}/{path}" for path in found.kubeconfig_paths(self._rows))
        return (*pki, *configs)

    def probe(self, host: Host) -> Sequence[Command]:
        return filesets.reading(host, self.writes(), sudo=self.sudo)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        there = self._found(filesets.contents(self.writes(), answers))
        wrong = found.faults(self._holder, there, self._rows, now=_now(), lifetime=self._lifetime)
        if not wrong:
            return Verdict.holds()
        reasons = [f"`{name}` {reason}" for name, some in wrong.items() for reason in some]
        is_new = not there.pki and not there.kubeconfigs
        return Verdict.needed("; ".join(reasons), "+" if is_new else "~")

    async def run(self, ctx: StepContext) -> None:
        there = self._found(await filesets.read(ctx.host, self.writes(), sudo=self.sudo))
        held = kept.of_value(ctx.values[VALUE])
        if strange := [*renewal.strangers(there.pki, held)]:
            raise Refused(
                "it is of another cluster",
                where=f"{self.directory}/{strange[0]}",
                hint="remove what is left of that cluster, if nobody needs it any more",
            )
        made = await in_thread(self._renewed, there, held)
        await filesets.write(ctx, made, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        await filesets.restore(ctx, self.writes(), sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return filesets.resources(self.writes())

    def _renewed(self, there: Found, held: Kept) -> dict[str, File]:
        """What has to be written, by its path; of a pair the key comes first."""
        issuing = Issuing(
            authorities=held.authorities,
            service_account=held.service_account,
            cluster=self.cluster,
            lifetime=self._lifetime,
            algorithm=self.algorithm,
        )
        made = renewal.renewed(self._holder, there, self._rows, issuing, now=_now())
        placed = {f"{self.directory}/{path}": file for path, file in made.pki.items()}
        placed |= {f"{self.kubeconfigs}/{path}": file for path, file in made.kubeconfigs.items()}
        return {path: placed[path] for path in self.writes() if path in placed}

    def _found(self, there: Mapping[str, bytes]) -> Found:
        configs = (f"{self.kubeconfigs}/{path}" for path in found.kubeconfig_paths(self._rows))
        return Found(
            filesets.below(self.directory, there),
            filesets.below(
                self.kubeconfigs, {path: there[path] for path in configs if path in there}
            ),
        )

    @cached_property
    def _holder(self) -> Holder:
        return msgspec.convert(self.host, Holder)

    @cached_property
    def _rows(self) -> tuple[CertificateRow, ...]:
        return found.rows_of(self._holder, self.only)

    @property
    def _lifetime(self) -> timedelta:
        return timedelta(seconds=self.lifetime)


@step("encryption-config")
class EncryptionConfig(Step):
    """The API server's configuration is there by which it encrypts what it keeps in etcd.

    What it encrypts already stays readable: other ways to encrypt follow after this one, and no
    resource is taken out.

    ```yaml
    - name: authorities
      runOnOneOf: [control-node]
      authorities: {encryption: true}
    - name: encryption
      encryption-config: {provider: secretbox}
    ```
    """

    path: str = layout.ENCRYPTION_CONFIG
    """Where the file is: an absolute path."""
    provider: Provider = "secretbox"
    """How it is encrypted."""
    encrypts: tuple[str, ...] = ("secrets",)
    """What is encrypted, by the names of the API."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(path=self.path)
        if not self.encrypts:
            message = "`encrypts` is empty, want what is encrypted"
            raise BadParameter(message, "write `encrypts: [secrets]`")

    def summary(self) -> str:
        return f"encryption of {', '.join(self.encrypts)} by {self.provider}"

    def needs(self) -> tuple[str, ...]:
        return (VALUE,)

    def writes(self) -> tuple[str, ...]:
        return (self.path,)

    def probe(self, host: Host) -> Sequence[Command]:
        return filesets.reading(host, self.writes(), sudo=self.sudo)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        there = self._read(filesets.contents(self.writes(), answers))
        if there is None:
            return Verdict.needed("does not exist", "+")
        reasons = encryption.faults(there, self.provider, self.encrypts)
        return Verdict.needed("; ".join(reasons)) if reasons else Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        there = self._read(await filesets.read(ctx.host, self.writes(), sudo=self.sudo))
        held = kept.of_value(ctx.values[VALUE])
        if not held.encryption:
            hint = "set `encryption: true` of the `authorities` step"
            raise StepFailed("the cluster keeps no key for it", hint=hint)
        text = encryption.text(self.provider, self.encrypts, held.encryption, there)
        made = {self.path: File(text.encode(), SECRET)}
        await filesets.write(ctx, made, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        await filesets.restore(ctx, self.writes(), sudo=self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return filesets.resources(self.writes())

    def _read(self, there: Mapping[str, bytes]) -> Encryption | None:
        if (text := there.get(self.path)) is None:
            return None
        try:
            return encryption.read(text)
        except InvalidInput as error:
            raise StepFailed(error.message, where=self.path, hint=error.hint) from None


def _given(name: str, certificate: str, key: str, now: datetime) -> Authority:
    """An authority that people supply, if it can be used."""
    return authorities.supplied(
        certificate.encode(), key.encode(), now=now, where=f"authority `{name}`"
    )


def _now() -> datetime:
    return datetime.now(UTC)
