"""The step about kube-proxy in a cluster that lives: it goes by its settings as they are now."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from kubexm.common import layout
from kubexm.errors import StepFailed
from kubexm.runner import files, kubeadm, kubectl, pod_evidence, services, workloads
from kubexm.runner.diagnosis import report
from kubexm.runner.host import Command, Completed, Host
from kubexm.runtime.contexts import StepContext
from kubexm.step.contract import Step, Verdict
from kubexm.step.parameters import require_absolute
from kubexm.step.registry import step

_RECORD = "kube-proxy-settings"
"""What a host calls the settings that kube-proxy was last made to go by."""
SECONDS = 600.0
"""More than ten rounds take, in which pods end, and others begin in their place."""
_ROUNDS = 10
_INTERVAL = 1.0
_PHASE = ("addon", "kube-proxy")
_PLACE = ("-n", "kube-system")
_NAME = "kube-proxy"
_ANNOTATION = "kubexm.io/settings"


@step("kube-proxy")
class ProxyConfigured(Step):
    """kube-proxy runs everywhere with the settings that the configuration of kubeadm has for it.

    kubeadm stores them in the cluster, and since kube-proxy reads them only when it starts, its
    pods are replaced, some at a time. It ends when those on all ready kube nodes run again. A
    record on the host says which settings these were; `proxySettings` of a `kubeadm-init` step
    makes the first one.

    ```yaml
    - name: proxy
      runOnOneOf: [all]
      timeout: 15m
      kube-proxy: {settings: "mode: nftables"}
    ```
    """

    settings: str
    """A text that stands for the settings: kube-proxy is made to go by them anew where the record
    is of another one."""
    config: str = layout.KUBEADM_CONFIG
    """The configuration on the host: an absolute path."""
    sudo: bool | None = None
    """Run as root through sudo; by default as `sudo` of the host says."""

    uninterruptible = True
    declares_intent = True

    def __post_init__(self) -> None:
        require_absolute(config=self.config)
        if not self.settings:
            raise ValueError("`settings` is empty")

    def summary(self) -> str:
        return f"kube-proxy as in {self.config}"

    def probe(self, host: Host) -> Sequence[Command]:
        return (_recorded_command(host, self.sudo),)

    def judge(self, answers: Sequence[Completed]) -> Verdict:
        recorded = _recorded(answers[0])
        if recorded == _digest(self.settings):
            return Verdict.holds()
        return Verdict.needed(
            "its settings were changed" if recorded else "there is no record of its settings"
        )

    async def run(self, ctx: StepContext) -> None:
        await ctx.ledger.remember(self.resources[0], {"record": await self._recorded(ctx)})
        await self._go_by(ctx, _digest(self.settings))

    async def rollback(self, ctx: StepContext) -> None:
        """The configuration is put back later; then it is settled."""

    async def settle(self, ctx: StepContext) -> bool:
        """The configuration is put back by now: have kube-proxy, if there is one, go by that."""
        (marker,) = await ctx.host.batch((kubeadm.marker_command(ctx.host, sudo=self.sudo),))
        if kubeadm.marker_of(marker) is None:
            await services.forget(ctx.host, _RECORD, sudo=self.sudo)
            return False
        before = (ctx.ledger.recall(self.resources[0]) or {}).get("record")
        if not before or before == await self._recorded(ctx):
            return False
        await self._go_by(ctx, before)
        return True

    async def diagnose(self, ctx: StepContext) -> str:
        words = (*_PLACE, "-l", f"k8s-app={_NAME}")
        return report(await pod_evidence.of_pods(ctx.host, *words, about=(_NAME,), sudo=self.sudo))

    @property
    def resources(self) -> tuple[str, ...]:
        return (_RECORD,)

    async def _recorded(self, ctx: StepContext) -> str:
        (answer,) = await ctx.host.batch(self.probe(ctx.host))
        return _recorded(answer)

    async def _go_by(self, ctx: StepContext, digest: str) -> None:
        command = kubeadm.phase(ctx.host, _PHASE, self.config, sudo=self.sudo)
        await kubeadm.done(ctx.host, command)
        await _replace_pods(ctx.host, digest, self.sudo)
        await _replaced(ctx.host, self.sudo)
        await services.record(ctx.host, _RECORD, digest, sudo=self.sudo)


async def note(host: Host, settings: str, *, sudo: bool | None = None) -> None:
    """Have the host remember that kube-proxy began with these settings."""
    await services.record(host, _RECORD, _digest(settings), sudo=sudo)


def _digest(settings: str) -> str:
    return sha256(settings.encode()).hexdigest()


def _recorded_command(host: Host, sudo: bool | None) -> Command:
    return files.content_command(host, services.record_path(host, _RECORD), 64, sudo=sudo)


def _recorded(answer: Completed) -> str:
    return files.content(answer, _RECORD).decode()


async def _replace_pods(host: Host, digest: str, sudo: bool | None) -> None:
    """Have all pods begin anew, as `kubectl rollout restart` does it, but only once for these."""
    nodes = await kubectl.get(host, "nodes", sudo=sudo)
    # The pod of a host that is down never ends, and would take the place of one in each round.
    at_once = _down(nodes) + max(1, len(nodes) // _ROUNDS)
    change: dict[str, Any] = {
        "spec": {
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": at_once}},
            "template": {"metadata": {"annotations": {_ANNOTATION: digest}}},
        }
    }
    words = ("patch", *_PLACE, "daemonset", _NAME, "--type", "merge", "-p", json.dumps(change))
    await kubectl.change(host, *words, sudo=sudo)


async def _replaced(host: Host, sudo: bool | None) -> None:
    """Return when pods with these settings run on all kube nodes that are ready."""
    why = ""
    try:
        async with asyncio.timeout(SECONDS):
            while True:
                why = await _behind(host, sudo)
                if not why:
                    return
                await asyncio.sleep(_INTERVAL)
    except TimeoutError:
        raise StepFailed(f"kube-proxy: after {SECONDS:g} s {why}") from None


async def _behind(host: Host, sudo: bool | None) -> str:
    """What is still to come; nothing if all has."""
    try:
        nodes = await kubectl.get(host, "nodes", sudo=sudo)
        found = await kubectl.get(host, *_PLACE, f"daemonset/{_NAME}", sudo=sudo)
    except StepFailed as error:
        return error.message
    return workloads.unfinished(found[0], without=_down(nodes)) if found else "it does not exist"


def _down(nodes: Sequence[kubectl.Object]) -> int:
    return sum(bool(workloads.not_ready(node)) for node in nodes)
