"""The time: kept by chrony where nobody keeps it yet, or where other servers are to be asked."""

from __future__ import annotations

from kubexm.plan import ExecutionFragment, node, parallel, per_host
from kubexm.plan.policy import ResourceConstraints
from kubexm.plan.scope import task
from kubexm.step.packages import Package
from kubexm.step.services import Service
from kubexm.task.context import ClusterContext
from kubexm.task.system import AGAIN, MANAGERS, PACKAGES, TIME_KEEPER
from kubexm.task.writing import rendered
from kubexm.templates.contexts.system import ChronyConfig

_APT = MANAGERS["apt"]
_WAYS = {
    "debian": (_APT, "chrony", "/etc/chrony/chrony.conf"),
    "others": (f"not ({_APT})", "chronyd", "/etc/chrony.conf"),
}
"""When, as which service and with which file, by those who call them alike."""
_UNKEPT = "not facts.clock.kept"


@task("time")
def kept(ctx: ClusterContext) -> ExecutionFragment | None:
    """Hosts that keep their time already are left alone, unless they are to ask other servers."""
    if not ctx.spec.system.ntp.enabled:
        return None
    limits = ResourceConstraints(pools=(PACKAGES,))
    package = Package(names=(TIME_KEEPER,))
    when = None if ctx.spec.system.ntp.servers else _UNKEPT
    return per_host(
        node("package", package, on=ctx.hosts, when=when, limits=limits, retry=AGAIN),
        parallel(*(_kept(ctx, name) for name in _WAYS)),
    )


def _kept(ctx: ClusterContext, name: str) -> ExecutionFragment:
    condition, unit, path = _WAYS[name]
    servers, hosts = ctx.spec.system.ntp.servers, ctx.hosts
    when = condition if servers else f"{condition} and {_UNKEPT}"
    file = rendered(ctx, "chrony/config", ChronyConfig(servers=servers), path)
    service = Service(unit, restarts_on=(path,) if servers else ())
    return per_host(
        node(f"{name}-config", file, on=hosts, when=when) if servers else None,
        node(f"{name}-service", service, on=hosts, when=when),
    )
