"""Steps about a control plane that kubeadm has made: new settings for it, and tokens to join by."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from kubexm.common import layout
from kubexm.errors import StepFailed
from kubexm.pki import reading
from kubexm.plan.node import Key
from kubexm.runner import files, kubeadm, kubectl, services
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step import static_pods
from kubexm.step.contract import Minter, Outcome, Step, Verdict
from kubexm.step.kubeadm import JOIN, why_not
from kubexm.step.parameters import require_absolute, require_argv, require_names
from kubexm.step.registry import step

_CA = f"{layout.PKI}/ca.crt"
_SIGNING = 20.0
"""Seconds after which hosts try it without; kubeadm waits for minutes by itself."""
_INTERVAL = 0.3


@step("kubeadm-phase")
class PhasesDone(Step):
    """Parts of a control plane are as these files say: phases of `kubeadm init` were run with them.

    It ends when the pods of the control plane run as their files say from then on. The host keeps a
    record of the files; where they differ from it, the phases are run again.
    `records` of a `kubeadm-init` or `kubeadm-join` step makes the first record.

    ```yaml
    - name: settings
      kubeadm-phase:
        record: control-plane
        phases: [[control-plane, all], [upload-config, kubeadm]]
        files: [/etc/kubernetes/kubexm/kubeadm.yaml]
    ```
    """

    record: str
    """What the record is called."""
    phases: tuple[tuple[str, ...], ...]
    """The phases in their order, each as words: `[control-plane, all]`."""
    files: tuple[str, ...]
    """Absolute paths of the files that they go by."""
    config: str = layout.KUBEADM_CONFIG
    """The configuration on the host: an absolute path."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    uninterruptible = True
    declares_intent = True

    def __post_init__(self) -> None:
        require_names((self.record,), "record")
        require_absolute(config=self.config)
        require_absolute(**{f"files[{i}]": path for i, path in enumerate(self.files)})
        require_argv(**{f"phases[{i}]": words for i, words in enumerate(self.phases)})
        if not self.phases or not self.files:
            raise ValueError("`phases` or `files` is empty: there would be nothing to do")

    def summary(self) -> str:
        return f"{self.record} as in {', '.join(self.files)}"

    def probe(self, host: Host) -> Sequence[Command]:
        return services.digest_commands(host, self.record, self.files, sudo=self.sudo)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        now, recorded = self._digests(answers)
        if now == recorded:
            return Verdict.holds()
        return Verdict.needed(
            "files it goes by were changed" if recorded else "there is no record of its files"
        )

    def follows(self) -> tuple[str, ...]:
        return self.files

    async def run(self, ctx: StepContext) -> None:
        now, recorded = await self._look(ctx)
        await ctx.ledger.remember(self.resources[0], {"record": recorded})
        await self._go_by(ctx, now)

    async def rollback(self, ctx: StepContext) -> None:
        """Its files are put back later; then it is settled."""

    async def settle(self, ctx: StepContext) -> bool:
        """Its files are put back by now: have the control plane, if there is one, go by them."""
        now, recorded = await self._look(ctx)
        (marker,) = await ctx.host.batch((kubeadm.marker_command(ctx.host, sudo=self.sudo),))
        if kubeadm.marker_of(marker) is None:
            await services.forget(ctx.host, self.record, sudo=self.sudo)
            return False
        if now != recorded:
            await self._go_by(ctx, now)
        return now != recorded

    async def diagnose(self, ctx: StepContext) -> str:
        return await why_not(ctx, self.sudo)

    @property
    def resources(self) -> tuple[str, ...]:
        return (f"kubeadm-phase:{self.record}",)

    async def _go_by(self, ctx: StepContext, digest: str) -> None:
        before = await static_pods.noted(ctx.host, sudo=self.sudo)
        for words in self.phases:
            command = kubeadm.phase(ctx.host, words, self.config, sudo=self.sudo)
            await kubeadm.done(ctx.host, command)
        await static_pods.awaited(ctx.host, before, sudo=self.sudo)
        await services.record(ctx.host, self.record, digest, sudo=self.sudo)

    async def _look(self, ctx: StepContext) -> tuple[str, str]:
        return self._digests(await ctx.host.batch(self.probe(ctx.host)))

    def _digests(self, answers: Sequence[Completed]) -> tuple[str, str]:
        """The digest of the files now, and that of the last time."""
        recorded = files.content(answers[1], self.record).decode()
        return services.digest_of(answers[0]), recorded


@step("join-token")
class JoinToken(Minter):
    """A token to join the cluster by was made, because a host has to join.

    It becomes the value `join`: `{token, caHashes}`.

    ```yaml
    - name: token
      runOnOneOf: [all]
      join-token: {ttl: 3600}
    ```
    """

    ttl: float = 3600.0
    """Seconds that the value is good for; the cluster takes the token twice as long."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    declares_intent = True

    def __post_init__(self) -> None:
        if self.ttl < 1:
            raise ValueError(f"`ttl` is {self.ttl:g}, want 1 or more")

    def summary(self) -> str:
        return "a token to join the cluster by"

    def provides(self) -> tuple[Key, ...]:
        return (Key(JOIN, secret=True, ttl=self.ttl),)

    async def precheck(self, ctx: StepContext) -> Verdict:
        return Verdict.needed("is made for those who join", "+")

    async def run(self, ctx: StepContext) -> Outcome:
        certificate = await files.read(ctx.host, _CA, sudo=self.sudo)
        if certificate is None:
            raise StepFailed(
                f"there is no `{_CA}`", hint="run it on a control plane, after `kubeadm-init`"
            )
        token = await kubeadm.made_token(ctx.host, 2 * self.ttl, sudo=self.sudo)
        await _signed(ctx.host, token, self.sudo)
        return Outcome(
            values={JOIN: {"token": token, "caHashes": [reading.public_key_hash(certificate)]}}
        )


async def _signed(host: Host, token: str, sudo: bool | None) -> None:
    """Return once the cluster tells of itself to who has this token, which takes a moment.

    Who joins before that looks again after five seconds, and so for every host that does.
    """
    sign, where = f"jws-kubeconfig-{token.partition('.')[0]}", ("-n", "kube-public")
    with suppress(TimeoutError):
        async with asyncio.timeout(_SIGNING):
            while True:
                found = await kubectl.get(host, *where, "configmap/cluster-info", sudo=sudo)
                if any(sign in info.get("data", {}) for info in found):
                    return
                await asyncio.sleep(_INTERVAL)
