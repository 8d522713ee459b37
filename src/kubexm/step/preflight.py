"""The step that holds a host against what its part in a cluster wants; it changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kubexm.common.checks import CHECKS, Finding, Kind
from kubexm.common.nearest import did_you_mean
from kubexm.errors import Refused
from kubexm.runner import probing
from kubexm.runner.host import Host
from kubexm.runner.probed import probed_of
from kubexm.runner.probing import Knock, Questions
from kubexm.runtime.contexts import StepContext
from kubexm.step import (
    preflight_machine,
    preflight_network,
    preflight_others,
    preflight_packages,
)
from kubexm.step.contract import Outcome, Step, Verdict
from kubexm.step.parameters import BadParameter
from kubexm.step.preflight_look import Found, Judge, Look, Place, Wanted
from kubexm.step.registry import step

JUDGES: Mapping[str, Judge] = {
    **preflight_machine.JUDGES,
    **preflight_network.JUDGES,
    **preflight_others.JUDGES,
}
"""How each check of a host by itself is made."""
_PACKAGES = "packages"
SECONDS = probing.SECONDS
"""More than all of it takes on any host."""
HELD = frozenset(
    (
        *("container-runtime", "leftovers", "ports-free", "networks-apart", "etcd-disk"),
        "endpoint-address-free",
    )
)
"""What can't be judged where the cluster itself is already: it would find that."""


@step("preflight")
class Fit(Wanted, Step):
    """The host is fit for its part in a cluster; else it is refused, with all that is wrong.

    What is only worth a warning is said, and goes into the result.

    ```yaml
    - name: fit
      preflight:
        checks: [systemd, memory, disk-space, ports-free]
        memoryMib: 1700
        disk: {/var/lib/kubelet: 10240}
        ports: {tcp/10250: the kubelet}
    ```
    """

    reads_facts = True

    def __post_init__(self) -> None:
        for name in self.checks:
            if name not in JUDGES:
                raise BadParameter(
                    f"`checks` has `{name}`, want a check", did_you_mean(name, JUDGES)
                )

    def summary(self) -> str:
        return f"fit by {len(self.checks)} checks"

    async def precheck(self, ctx: StepContext) -> Verdict:
        found = await self.examine(ctx.host)
        warnings = [*_told(found, "warning")]
        for line in warnings:
            ctx.say("stderr", line)
        if refusals := [*_told(found, "refusal")]:
            names = dict.fromkeys(f"`{each.check}`" for each in found if each.kind == "refusal")
            raise Refused("\n".join((f"not fit, by {', '.join(names)}", *refusals)))
        return Verdict.holds("\n".join(("fit", *warnings)))

    async def run(self, ctx: StepContext) -> Outcome:
        verdict = await self.precheck(ctx)
        return Outcome(changed=False, message=verdict.reason)

    async def examine(self, host: Host) -> list[Finding]:
        """Everything that the checks find on a host."""
        place = self.hosts.get(host.name, Place())
        ask = probing.command(host, self._questions(place, host.facts))
        (answer,) = await host.batch((ask,))
        look = Look(host.name, self, host.facts, probed_of(Host.checked(("preflight",), answer)))
        if _PACKAGES in self.checks:
            look = await _with_packages(host, look)
        return [finding for name in self.checks for finding in _findings(name, look)]

    def _questions(self, place: Place, facts: Mapping[str, Any]) -> Questions:
        peers = ((peer, port) for peer in (*place.peers, *self.site) for port in peer.ports)
        return Questions(
            self.cluster,
            self.etcd,
            f"{self.endpoint} {self.endpoint_port}" if self.endpoint else "",
            preflight_network.asked_for_names(facts) if "nameserver" in self.checks else (),
            tuple(Knock(peer.host, peer.address, port) for peer, port in peers),
        )


async def _with_packages(host: Host, look: Look) -> Look:
    """The same with what is known of packages that are missing; few hosts have to be asked."""
    if not (names := preflight_packages.missing(look)):
        return look
    manager = look.facts["package_manager"]
    answers = await host.batch(preflight_packages.questions(host, manager, names))
    return replace(look, out_of_reach=preflight_packages.out_of_reach(manager, names, answers))


def _findings(name: str, look: Look) -> Iterator[Finding]:
    """What one check finds."""
    if look.probed.is_ours and name in HELD:
        what = "the host belongs to this cluster already"
        yield Finding(name, (look.host,), what, kind="held")
        return
    for found in JUDGES[name](look):
        yield _finding(name, look.host, found)


def _finding(name: str, host: str, found: Found) -> Finding:
    check = CHECKS[name]
    kind: Kind = found.kind or check.severity
    remedy = found.remedy or ("" if kind == "unknown" else check.remedy)
    return Finding(name, (host,), found.what, found.figure, remedy, kind)


def _told(found: Sequence[Finding], kind: Kind) -> Iterator[str]:
    for each in found:
        if each.kind == kind:
            yield f"{each.check}: {each.message} (hint: {each.remedy})"
