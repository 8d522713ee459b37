"""Steps about container images: in the store of this machine, in a registry, on hosts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from typing import Literal

from kubexm.common.assets import RegistryAccess
from kubexm.errors import InvalidInput, StepFailed
from kubexm.pki import reading
from kubexm.plan.node import Key
from kubexm.runner import containers, files
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Minter, Outcome, Step, Values, Verdict
from kubexm.step.parameters import (
    BadParameter,
    require_absolute,
    require_names,
    require_references,
)
from kubexm.step.registry import step
from kubexm.step.transfers import progress_of

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""What images call an architecture, by what the kernel calls it."""


@step("image")
class ImagePresent(Step):
    """The containerd of the host has an image.

    ```yaml
    - name: pause
      image: {name: "registry.k8s.io/pause:3.10.2"}
    ```
    """

    name: str
    """Its full name."""
    source: Literal["registry", "store"] = "registry"
    """Where it comes from: the registry of its name, or the one that containerd asks in its place,
    or the store of artifacts of the machine that runs kubexm."""
    login: bool = False
    """Whether a registry asks who we are: then it is pulled by crictl, as it is for pods, with the
    login that the settings of containerd have."""
    stored: str = ""
    """What the store calls it, if not by the same name."""
    arch: str = ""
    """The architecture, such as `amd64`; that of the host unless given."""
    namespace: str = containers.KUBERNETES
    """The namespace of containerd; Kubernetes has its own."""
    value: str = ""
    """The value that says that it is in the store; without one it has to be there already."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True
    verifies = True
    reads_facts = True

    def __post_init__(self) -> None:
        require_names((self.name,), "container image")
        require_names((self.namespace,), "namespace")

    @classmethod
    def looked_at(cls, params: Values) -> Values:
        names = ("name", "login", "namespace", "sudo")
        return {name: params[name] for name in names if name in params}

    def summary(self) -> str:
        return f"image {self.name}"

    def needs(self) -> tuple[str, ...]:
        return (self.value,) if self.value else ()

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"image:{self.namespace}/{self.name}",)

    def probe(self, host: Host) -> Sequence[Command]:
        return (containers.image_command(host, self.namespace, self._kept_as, sudo=self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        if containers.has_image(answers[0], self._kept_as):
            return Verdict.holds()
        return Verdict.needed("containerd does not have it", "+")

    async def run(self, ctx: StepContext) -> None:
        answers = await ctx.host.batch(self.probe(ctx.host))
        there = containers.has_image(answers[0], self._kept_as)
        await ctx.ledger.remember(self.resources[0], {"there": there})
        if self.source == "store":
            await self._take(ctx)
        elif self.login:
            await self._pull_with_login(ctx.host)
        else:
            await containers.pull(ctx.host, self.namespace, self.name, sudo=self.sudo)

    async def rollback(self, ctx: StepContext) -> None:
        prior = ctx.ledger.recall(self.resources[0])
        if prior is not None and not prior["there"]:
            await containers.drop(ctx.host, self.namespace, self._kept_as, sudo=self.sudo)
        await self._clear(ctx.host)

    @property
    def _kept_as(self) -> str:
        """What containerd calls it."""
        return containers.kept_as(self.name) if self.login else self.name

    async def _pull_with_login(self, host: Host) -> None:
        await containers.pull_for_kubernetes(host, self.name, sudo=self.sudo)
        if self.namespace == containers.KUBERNETES:
            return
        # Only Kubernetes has logins. What it has pulled for others, and no pod uses, the kubelet
        # takes away when it needs the room.
        path = self._archive(host)
        await files.make_directory(host, path.rpartition("/")[0], sudo=self.sudo)
        await containers.write(host, containers.KUBERNETES, self._kept_as, path, sudo=self.sudo)
        await containers.take(host, self.namespace, path, sudo=self.sudo)
        await self._clear(host)

    async def _take(self, ctx: StepContext) -> None:
        """Bring the image as an archive, which goes when containerd has it."""
        arch, stored = self._arch(ctx.host), self.stored or self.name
        digest = ctx.assets.image_digest(stored, arch)
        path = self._archive(ctx.host)
        await files.make_directory(ctx.host, path.rpartition("/")[0], sudo=self.sudo)
        await ctx.host.upload_made(
            ("image", digest, self.name),
            partial(ctx.assets.write_image, stored, arch, self.name),
            path,
            mode=0o600,
            sudo=self.sudo,
            progress=progress_of(ctx),
        )
        await containers.take(ctx.host, self.namespace, path, sudo=self.sudo)
        await self._clear(ctx.host)

    async def _clear(self, host: Host) -> None:
        path = self._archive(host)
        await files.remove(host, path, sudo=self.sudo)
        await files.remove_part(host, path, sudo=self.sudo)

    def _archive(self, host: Host) -> str:
        name = sha256(self.resources[0].encode()).hexdigest()[:32]
        return f"{host.state_dir}/images/{name}.tar"

    def _arch(self, host: Host) -> str:
        if self.arch:
            return self.arch
        machine = str(host.facts.get("arch", ""))
        if (known := _ARCHITECTURES.get(machine)) is None:
            wanted = " or ".join(f"`{name}`" for name in _ARCHITECTURES)
            message = f"the host is a `{machine}`, want {wanted}"
            raise StepFailed(message, hint="say by `arch` which image it can run")
        return known


@step("image-archive")
class ImageStored(Minter):
    """An image is in the store of artifacts, because something needs it.

    ```yaml
    - name: pause
      runOnOneOf: [control-node]
      image-archive: {name: "registry.k8s.io/pause:3.10.2", architectures: [amd64], value: image_1}
    ```
    """

    name: str
    """Its full name."""
    architectures: tuple[str, ...]
    """The architectures that it has to be there for, such as `amd64`."""
    value: str
    """The name of the value that it leaves: the digest of the image for each architecture."""

    def summary(self) -> str:
        return f"image {self.name} here"

    def provides(self) -> tuple[Key, ...]:
        return (Key(self.value),)

    async def precheck(self, ctx: StepContext) -> Verdict:
        return Verdict.needed("is asked for when something needs it")

    async def run(self, ctx: StepContext) -> Outcome:
        await ctx.assets.fetch_image(self.name, self.architectures, progress_of(ctx))
        digests = {arch: ctx.assets.image_digest(self.name, arch) for arch in self.architectures}
        # No host is another than before, so there is nothing that a rollback would take back.
        return Outcome(changed=False, values={self.value: digests})


@step("image-pushed")
class ImagePushed(Step):
    """A registry has an image of the store.

    ```yaml
    - name: pause
      image-pushed:
        name: registry.k8s.io/pause:3.10.2
        asName: mine.lan:5000/registry.k8s.io/pause:3.10.2
        registry: mine.lan:5000
        architectures: [amd64]
    ```
    """

    name: str
    """What the store calls it."""
    as_name: str
    """What the registry calls it."""
    registry: str
    """The host and port of the registry."""
    architectures: tuple[str, ...]
    """The architectures that it has to be there for, such as `amd64`."""
    ca: str = ""
    """A file of the machine that runs kubexm, with certificates that the registry is known by: an
    absolute path."""
    plain_http: bool = False
    """Whether the registry speaks in the clear."""
    username: str = ""
    """Who we are to it; nobody in particular unless given."""
    password: str | None = None
    """The password as a reference: `env://NAME` or `file:///PATH`."""
    value: str = ""
    """The value that says that it is in the store; without one it has to be there already."""

    def __post_init__(self) -> None:
        require_references(password=self.password)
        require_absolute(ca=self.ca or None)
        if self.password is not None and not self.username:
            raise BadParameter("`password` needs `username`", "say whose password it is")
        if not self.as_name.startswith(f"{self.registry}/"):
            message = f"`as_name` is `{self.as_name}`, want an image of `{self.registry}`"
            raise BadParameter(message, f"begin it with `{self.registry}/`")

    def summary(self) -> str:
        return f"image {self.as_name} in {self.registry}"

    def needs(self) -> tuple[str, ...]:
        return (self.value,) if self.value else ()

    async def precheck(self, ctx: StepContext) -> Verdict:
        registry = await self._access(ctx)
        if await ctx.assets.pushed(self.as_name, registry, self.architectures):
            return Verdict.holds()
        return Verdict.needed(f"`{self.registry}` does not have it", "+")

    async def run(self, ctx: StepContext) -> None:
        registry = await self._access(ctx)
        await ctx.assets.push(self.name, self.as_name, registry, progress_of(ctx))

    async def _access(self, ctx: StepContext) -> RegistryAccess:
        return RegistryAccess(
            address=self.registry,
            ca=await asyncio.to_thread(self._trusted, ctx.host) if self.ca else "",
            plain_http=self.plain_http,
            username=self.username,
            password="" if self.password is None else ctx.reveal(self.password),
        )

    def _trusted(self, host: Host) -> str:
        """The certificates of the file that `ca` names."""
        try:
            found = host.here(self.ca).read_bytes()
            reading.parsed(found)
        except FileNotFoundError:
            message = f"there is no file `{self.ca}`, by which `{self.registry}` would be known"
            hint = "bring it here with a `fetch` step before this one"
            raise StepFailed(message, hint=hint) from None
        except InvalidInput as error:
            raise StepFailed(error.message, where=self.ca, hint=error.hint) from None
        return found.decode()
