"""A pipeline in Python: what it comes to hangs on the facts of the hosts.

`python examples/in_python.py` plans it, runs it on simulated hosts and prints the report.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from kubexm.engine import MemoryJournal, Options, execute
from kubexm.plan import (
    ExecutionFragment,
    ExecutionGraph,
    GraphExecutionResult,
    as_graph,
    chain,
    module,
    node,
    parallel,
    per_host,
    pipeline,
    report,
    task,
)
from kubexm.plan.text import as_text
from kubexm.runtime.build import HostConfig, Runtime, RuntimeConfig
from kubexm.runtime.contexts import PlanContext
from kubexm.sim import Machine, PackageSettings, ServiceSettings, World, WorldSettings
from kubexm.spec.description import describe
from kubexm.spec.loader import Loader
from kubexm.step.files import FilePresent
from kubexm.step.packages import Package
from kubexm.step.services import Service

NGINX = "/etc/nginx/conf.d/site.conf"
ROLES = {"web1": "web", "web2": "web", "db1": "database"}
MACHINES = {
    "web1": Machine(cpus=8, memory_mib=16_384),
    "web2": Machine(cpus=2, memory_mib=2_048),
    "db*": Machine(cpus=4, memory_mib=8_192),
}


def fact(ctx: PlanContext, host: str, name: str) -> int:
    """A number that a host tells of itself; one that was not reached tells nothing."""
    return int(ctx.facts[host].get(name, 0))


def workers(ctx: PlanContext) -> int:
    """As many as the smallest web server has processors; looked for once per pipeline."""

    def smallest() -> int:
        return min(fact(ctx, host, "cpus") for host in ctx.on("web"))

    return ctx.cache.once("pipeline", "workers", smallest)


@task("nginx")
def nginx(ctx: PlanContext) -> ExecutionFragment:
    """Install nginx, and run it with as many workers everywhere."""
    hosts = ctx.on("web")
    content = f"listen {ctx.vars['port']};\nworker_processes {workers(ctx)};\n"
    return per_host(
        node("package", Package(("nginx",)), on=hosts),
        node("settings", FilePresent(NGINX, content), on=hosts),
        node("service", Service("nginx", restarts_on=(NGINX,)), on=hosts),
    )


@task("cache")
def cache(ctx: PlanContext) -> ExecutionFragment | None:
    """Let hosts with memory to spare keep pages in it."""
    large = [host for host in ctx.on("web") if fact(ctx, host, "memory_mib") >= 8_192]
    return node("size", FilePresent("/etc/nginx/conf.d/cache.conf", "size 4g;\n"), on=large)


@task("swap")
def swap(ctx: PlanContext) -> ExecutionFragment | None:
    """Help databases with little memory."""
    small = [host for host in ctx.on("database") if fact(ctx, host, "memory_mib") < 4_096]
    if not small:
        return None  # not required: there is no such task in the graph
    return node("swappiness", FilePresent("/etc/sysctl.d/swap.conf", "swappiness = 60\n"), on=small)


@module("web")
def web(ctx: PlanContext) -> ExecutionFragment:
    """The web servers."""
    return chain(nginx(ctx), cache(ctx))


@module("database")
def database(ctx: PlanContext) -> ExecutionFragment | None:
    """The databases."""
    clients = f"max_connections = {10 * workers(ctx)}\n"
    settings = node("settings", FilePresent("/etc/database.conf", clients), on=ctx.on("database"))
    return parallel(settings, swap(ctx))


@pipeline("shop")
def shop(ctx: PlanContext) -> ExecutionFragment:
    """Databases first, then the web servers."""
    return chain(database(ctx), web(ctx))


async def main() -> None:
    """Plan the pipeline for simulated hosts and run it there."""
    with tempfile.TemporaryDirectory() as directory:
        world = World.create(Path(directory) / "world", settings())
        try:
            graph, result = await run(world, port=8080)
        finally:
            world.close()
    print(as_text(graph, describe))
    print(report.as_text(report.report(graph, result)))


async def run(world: World, **vars: object) -> tuple[ExecutionGraph, GraphExecutionResult]:
    """The graph that the facts of these hosts lead to, and what came of it."""
    hosts = [
        HostConfig(name, world.connector(name), described={"name": name, "roles": [role]})
        for name, role in ROLES.items()
    ]
    async with Runtime.build(RuntimeConfig(hosts)) as runtime:
        graph = as_graph("shop", shop(runtime.plan_context(vars)), hosts=tuple(ROLES))
        result = await execute(graph, runtime, Options(), load=Loader(), journal=MemoryJournal())
    return graph, result


def settings() -> WorldSettings:
    """Machines of three sizes, and a package to install."""
    package = PackageSettings(
        files={"/etc/nginx/conf.d/README": ""}, services={"nginx": ServiceSettings()}
    )
    return WorldSettings(machines=MACHINES, packages={"nginx": package})


if __name__ == "__main__":
    asyncio.run(main())
