"""Steps that make a host a member of a cluster by kubeadm, and take it out again.

kubeadm can't tell whose a cluster is, so the host keeps a record of how far we got.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kubexm.common import layout
from kubexm.errors import Refused
from kubexm.runner import files, host_evidence, kubeadm, residue, services
from kubexm.runner.diagnosis import report
from kubexm.runner.host import Command, Completed, Host
from kubexm.runner.kubeadm import Marker, Part, Progress, Role
from kubexm.runtime.contexts import StepContext
from kubexm.step import kube_proxy
from kubexm.step.contract import Step, Verdict
from kubexm.step.parameters import require_absolute, require_one
from kubexm.step.registry import step
from kubexm.templates import render
from kubexm.templates.context import Format

JOIN = "join"
"""The value of a `join-token` step: what a host needs to be let in."""
_JOIN_CONFIG = f"{layout.SECRETS_IN_MEMORY}/kubeadm-join.yaml"
MEMBERSHIP = "kubeadm"
"""What the ledger calls that a host is a member of a cluster."""
_KUBELET = "kubelet"
_START_KUBELET = "kubelet-start"


@dataclass(frozen=True)
class Member(Step):
    """A host is a member of a cluster that kubexm has made."""

    skip_phases: tuple[str, ...] = ()
    """Phases of kubeadm to leave out, such as `addon/coredns`. Name them here and not in its
    configuration, which counts for nothing where there is such a list."""
    ignore_errors: tuple[str, ...] = ()
    """Checks of kubeadm whose failure is no reason to stop, such as `NumCPU`."""
    records: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By unit the files that it was started with, as `restartsOn` of its `service` step has
    them: kubeadm starts the kubelet itself."""
    port: int = 6443
    """Where the API server of the host listens."""
    etcd_data: str = "/var/lib/etcd"
    """Where etcd keeps its data, if kubeadm runs it."""
    cluster: str = ""
    """The name of the cluster, which the host remembers: a member of another one is refused."""
    goes_with_cluster: bool = False
    """Whether no other member stays when it is undone: then nobody is told that this one goes."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    role: ClassVar[Role]
    uninterruptible = True
    declares_intent = True
    # Without kubeadm and the container runtime nobody can take out what is half a member.
    undoes_itself = "going back"
    verifies = True

    def __post_init__(self) -> None:
        require_absolute(etcd_data=self.etcd_data)
        for unit, paths in self.records.items():
            for path in paths or ("",):
                require_absolute(**{f"records.{unit}": path})

    def probe(self, host: Host) -> Sequence[Command]:
        return _looks(host, self.sudo)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        is_member, marker = _seen(answers)
        if marker is None:
            if is_member:
                raise _not_ours()
            return Verdict.needed("is no member of a cluster", "+")
        self._require_same(marker)
        if marker.state == "begun":
            return Verdict.needed("kubeadm was begun here, and did not finish")
        if not is_member:
            return Verdict.needed(f"`{layout.KUBELET_KUBECONFIG}` is gone", "+")
        return Verdict.holds()

    async def run(self, ctx: StepContext) -> None:
        is_member, marker = _seen(await ctx.host.batch(self.probe(ctx.host)))
        if marker is not None:
            self._require_same(marker)
        await ctx.ledger.remember(self.resources[0], {"member": False})
        is_begun = marker is not None and marker.state == "begun"
        await self._mark(ctx, "begun")
        await self._become(ctx, is_begun=is_begun, has_joined=is_begun and is_member)
        for unit, paths in self.records.items():
            await _record(ctx.host, unit, paths, self.sudo)
        await self._mark(ctx, "done")

    async def rollback(self, ctx: StepContext) -> None:
        if ctx.ledger.recall(MEMBERSHIP) is None:
            return
        is_member, marker = _seen(await ctx.host.batch(self.probe(ctx.host)))
        if is_member or marker is not None:
            skipped = ("remove-etcd-member",) if self.goes_with_cluster else ()
            await Reset(skip_phases=skipped, sudo=self.sudo).take_out(ctx)
        # Who takes the cluster away later finds no kubeadm here, and nothing to be done by it.
        await ctx.ledger.drop(MEMBERSHIP)

    async def diagnose(self, ctx: StepContext) -> str:
        return await why_not(ctx, self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return (MEMBERSHIP,)

    @property
    def part(self) -> Part | None:
        """What the host becomes a member as; None if that is not known."""
        raise NotImplementedError

    async def _mark(self, ctx: StepContext, state: Progress) -> None:
        marker = Marker(state, self.role, self.part, self.cluster)
        await kubeadm.mark(ctx.host, marker, sudo=self.sudo)

    def _require_same(self, marker: Marker) -> None:
        """Refuse to make another kind of member of a host than it is, or one of another cluster."""
        if marker.cluster and self.cluster and marker.cluster != self.cluster:
            raise _of_another(marker.cluster)
        if marker.state == "begun" and marker.role != self.role:
            raise _otherwise(f"`kubeadm {marker.role}`", f"`kubeadm {self.role}`")
        if None not in (marker.part, self.part) and marker.part != self.part:
            raise _otherwise(f"joining as {marker.part}", f"joining as {self.part}")

    async def _become(self, ctx: StepContext, *, is_begun: bool, has_joined: bool) -> None:
        """Run kubeadm; `has_joined` if an earlier attempt got as far as the kubelet."""
        raise NotImplementedError

    async def _carry_out(self, ctx: StepContext, command: Command, is_begun: bool) -> None:
        answer = await ctx.host.execute(command)
        if answer.ok:
            return
        if kubeadm.only_checked(answer) and not is_begun:
            # Nothing of ours is there: the next attempt has no reason to overlook anything, and
            # no cluster has begun that the file would have to agree with.
            await kubeadm.forget(ctx.host, sudo=self.sudo)
            await ctx.ledger.drop(MEMBERSHIP)
        raise kubeadm.failure(command, answer)

    def _ignored(self, is_begun: bool) -> tuple[str, ...]:
        left = kubeadm.own_leftovers(self.port, self.etcd_data) if is_begun else ()
        return (*self.ignore_errors, *left)


@step("kubeadm-init")
class Initialised(Member):
    """A cluster was begun with this host, by `kubeadm init`.

    It is run once. After one that was interrupted, it is run again over what that has left. A
    host that is a member of a cluster which kubexm has not made is refused.

    ```yaml
    - name: cluster
      timeout: 10m
      kubeadm-init:
        config: /etc/kubernetes/kubexm/kubeadm.yaml
        skipPhases: [addon]
        records: {kubelet: [/etc/kubernetes/kubelet.yaml]}
    ```
    """

    config: str = layout.KUBEADM_CONFIG
    """The configuration on the host: an absolute path."""
    proxy_settings: str = ""
    """The `settings` of a `kube-proxy` step, which finds them in use then; empty if there is
    none."""

    role = "init"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_absolute(config=self.config)

    @property
    def part(self) -> Part:
        return "control-plane"

    def summary(self) -> str:
        return "a cluster begins with this host"

    async def _become(self, ctx: StepContext, *, is_begun: bool, has_joined: bool) -> None:
        ignored = self._ignored(is_begun)
        skipped = self.skip_phases
        command = kubeadm.init(
            ctx.host, self.config, skip_phases=skipped, ignore_errors=ignored, sudo=self.sudo
        )
        if self.proxy_settings and not is_begun:
            # What an attempt leaves runs with the settings of the first that got so far.
            await kube_proxy.note(ctx.host, self.proxy_settings, sudo=self.sudo)
        await self._carry_out(ctx, command, is_begun)


@step("kubeadm-join")
class Joined(Member):
    """A host has joined a cluster, by `kubeadm join`.

    Its configuration is a template; it finds the token as `token` and the digests of the
    cluster's CA as `ca_hashes`, both from a `join-token` step before, and never reaches a disk.

    ```yaml
    - name: token
      runOnOneOf: [all]
      join-token: {}
    - name: member
      timeout: 10m
      kubeadm-join:
        text: |
          apiVersion: kubeadm.k8s.io/v1beta4
          kind: JoinConfiguration
          discovery:
            bootstrapToken:
              apiServerEndpoint: api.example.org:6443
              token: {{ token | yaml }}
              caCertHashes: {{ ca_hashes | yaml }}
    ```
    """

    template: str | None = None
    """The name of a template that comes with the program."""
    text: str | None = None
    """The template itself, in Jinja; give this or `template`."""
    data: dict[str, Any] = field(default_factory=dict)
    """What the template may use, by name, beside `token` and `ca_hashes`."""
    overrides: dict[str, Any] = field(default_factory=dict)
    """Single values that win over what the template says; for `manifests` by kind."""
    format: Format = "yaml"
    """What the template makes: `yaml`, or `manifests` for several documents."""
    control_plane: bool | None = None
    """Whether it becomes a control plane: then a host that has become the other is refused."""

    role = "join"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one(template=self.template, text=self.text)

    @property
    def part(self) -> Part | None:
        if self.control_plane is None:
            return None
        return "control-plane" if self.control_plane else "worker"

    def summary(self) -> str:
        return "the host is a member of the cluster"

    def needs(self) -> tuple[str, ...]:
        return (JOIN,)

    async def _become(self, ctx: StepContext, *, is_begun: bool, has_joined: bool) -> None:
        skipped = self.skip_phases
        if has_joined:
            # kubeadm refuses a node that is ready, and this one may be ready by now.
            skipped = (*skipped, _START_KUBELET)
            await services.start(ctx.host, _KUBELET, sudo=self.sudo)
        command = kubeadm.join(
            ctx.host,
            _JOIN_CONFIG,
            skip_phases=skipped,
            ignore_errors=self._ignored(is_begun),
            sudo=self.sudo,
        )
        content = self._configuration(ctx.values[JOIN])
        async with kubeadm.kept_for_a_while(ctx.host, _JOIN_CONFIG, content, sudo=self.sudo):
            await self._carry_out(ctx, command, is_begun)

    def _configuration(self, join: dict[str, Any]) -> bytes:
        text = self.text if self.template is None else render.source(self.template)
        what = "template text" if self.template is None else f"template `{self.template}`"
        data = {**self.data, "token": join["token"], "ca_hashes": join["caHashes"]}
        return render.merged(text or "", data, self.overrides, self.format, what=what).encode()


@step("kubeadm-reset")
class Reset(Step):
    """A host is no member of a cluster that kubexm has made: `kubeadm reset`, and what that leaves.

    Rules, chains and network interfaces go by the names that Kubernetes and its pod networks give
    them; those of others stay. So does a cluster that kubexm has not made.

    ```yaml
    - name: out
      timeout: 10m
      kubeadm-reset: {skipPhases: [remove-etcd-member], paths: [/var/lib/etcd, /var/lib/cni]}
    ```
    """

    skip_phases: tuple[str, ...] = ()
    """Phases of kubeadm to leave out: `remove-etcd-member` where no member is to stay."""
    paths: tuple[str, ...] = ()
    """What else is removed, each with all that is in it: absolute paths."""
    links: tuple[str, ...] = residue.LINKS
    """Network interfaces to remove, by name; `*` stands for anything, `[a-f]` for one of these."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    uninterruptible = True
    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(**{f"paths[{i}]": path for i, path in enumerate(self.paths)})

    def summary(self) -> str:
        return "the host is no member of a cluster"

    def probe(self, host: Host) -> Sequence[Command]:
        return _looks(host, self.sudo)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        is_member, marker = _seen(answers)
        if marker is not None:
            return Verdict.needed("is a member of a cluster", "-")
        return Verdict.holds("of a cluster that kubexm did not make" if is_member else "")

    async def run(self, ctx: StepContext) -> None:
        await self.take_out(ctx)
        if await ctx.ledger.recall_first(MEMBERSHIP) is not None:
            await ctx.ledger.drop(MEMBERSHIP)

    async def take_out(self, ctx: StepContext) -> None:
        """Undo what kubeadm has done here, whatever the ledger says of it."""
        command = kubeadm.reset(ctx.host, skip_phases=self.skip_phases, sudo=self.sudo)
        await kubeadm.done(ctx.host, command)
        await kubeadm.remove_kept(ctx.host, _JOIN_CONFIG, sudo=self.sudo)
        await residue.remove_namespaces(ctx.host, sudo=self.sudo)
        await residue.remove_links(ctx.host, self.links, sudo=self.sudo)
        await residue.remove_rules(ctx.host, sudo=self.sudo)
        for path in self.paths:
            await files.remove(ctx.host, path, recursive=True, sudo=self.sudo)
        await residue.remove_settings(ctx.host, sudo=self.sudo)
        await kubeadm.forget(ctx.host, sudo=self.sudo)


async def why_not(ctx: StepContext, sudo: bool | None) -> str:
    """Why kubeadm waited in vain: what the kubelet and its pods say."""
    return report(await host_evidence.of_kubernetes(ctx.host, ctx.took, sudo=sudo))


def _looks(host: Host, sudo: bool | None) -> tuple[Command, Command]:
    """Ask whether a host is a member of a cluster, and how far we got with that."""
    return (
        files.stat_command(host, layout.KUBELET_KUBECONFIG, sudo=sudo),
        kubeadm.marker_command(host, sudo=sudo),
    )


def _seen(answers: Sequence[Completed]) -> tuple[bool, Marker | None]:
    return files.seen(answers[0]) is not None, kubeadm.marker_of(answers[1])


def _not_ours() -> Refused:
    return Refused(
        f"the host belongs to a cluster that kubexm did not make: `{layout.KUBELET_KUBECONFIG}`"
        " is there",
        hint="take it out of that cluster with `kubeadm reset`, or leave the host out",
    )


def _of_another(cluster: str) -> Refused:
    return Refused(
        f"the host is a member of the cluster `{cluster}`",
        hint="delete that one first, or leave the host out; if it is this one and the file calls"
        " it otherwise by now, write its old name",
    )


def _otherwise(was: str, wanted: str) -> Refused:
    return Refused(
        f"the host was made a member by {was}, and this would make it one by {wanted}",
        hint="leave its role as it was; who wants another takes it out of the cluster first",
    )


async def _record(host: Host, unit: str, paths: Sequence[str], sudo: bool | None) -> None:
    """Keep with which files a unit was started, as if it had been started by its own step."""
    answers = await host.batch(services.digest_commands(host, unit, paths, sudo=sudo))
    await services.record(host, unit, services.digest_of(answers[0]), sudo=sudo)
