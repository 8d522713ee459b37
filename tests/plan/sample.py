"""One plan that has a bit of everything, for golden files."""

from kubexm.plan import (
    ExecutionFragment,
    ExecutionGraph,
    HookFragment,
    StepSpec,
    build,
    chain,
    node,
    one_of,
    parallel,
    per_host,
    rolling,
    scope,
)

HOSTS = tuple(f"node{number}" for number in range(1, 21))
MASTERS = HOSTS[:3]
CONTROL = ("control-node",)


def describe(step: StepSpec) -> str:
    """What a step is about, as its own summary would say."""
    return str(step.params.get("says", step.kind))


def create_cluster() -> ExecutionGraph:
    whole = scope(
        "create-cluster",
        chain(_preflight(), parallel(_etcd(), _runtime()), _control_plane(), _workers()),
        hooks=[HookFragment("always", _step("report", "a summary by mail", CONTROL))],
    )
    assert whole is not None
    return build(
        "create-cluster",
        whole.nodes,
        joins=whole.joins,
        hosts=(*HOSTS, *CONTROL),
        compensations=whole.compensations,
    )


def _step(
    name: str, says: str, hosts: tuple[str, ...], when: str | None = None
) -> ExecutionFragment:
    fragment = node(name, StepSpec("step", {"says": says}), on=hosts, when=when)
    assert fragment is not None
    return fragment


def _preflight() -> ExecutionFragment | None:
    checks = parallel(
        _step("memory", "at least 2 GiB", HOSTS),
        _step("ports", "2379 and 6443 are free", MASTERS),
    )
    return scope("preflight", checks)


def _etcd() -> ExecutionFragment | None:
    install = scope(
        "install",
        per_host(
            _step("binary", "etcd 3.5 in /usr/local/bin", MASTERS),
            _step("config", "/etc/etcd/etcd.yaml", MASTERS),
            _step("service", "etcd running, enabled", MASTERS),
        ),
        hooks=[HookFragment("on-failure", _step("logs", "journalctl -u etcd", MASTERS))],
        compensate=chain(
            _step("stop", "etcd stopped", MASTERS), _step("wipe", "no /var/lib/etcd", MASTERS)
        ),
    )
    healthy = node("healthy", StepSpec("step", {"says": "etcd answers"}), on=one_of(MASTERS))
    certificates = scope(
        "certificates",
        chain(_step("ca", "etcd CA", CONTROL), _step("leaves", "9 certificates", CONTROL)),
    )
    return scope("etcd", chain(certificates, install, healthy))


def _runtime() -> ExecutionFragment | None:
    install = per_host(
        parallel(
            _step("runc", "runc 1.1 in /usr/local/bin", HOSTS),
            _step("containerd", "containerd 1.7.6 in /usr/local", HOSTS),
        ),
        parallel(
            _step("config", "/etc/containerd/config.toml", HOSTS),
            _step("unit", "containerd.service", HOSTS),
        ),
        _step("service", "containerd running, enabled", HOSTS),
    )
    return scope("container-runtime", scope("containerd.install", install))


def _control_plane() -> ExecutionFragment | None:
    joined = rolling(MASTERS[1:], 1, lambda hosts: _step("join", "a master", tuple(hosts)))
    init = node("init", StepSpec("step", {"says": "initialised"}), on=one_of(MASTERS))
    return scope("control-plane", chain(init, scope("join", joined)))


def _workers() -> ExecutionFragment | None:
    workers = HOSTS[3:]
    steps = per_host(
        _step("join", "a worker", workers, when="facts.arch == 'amd64'"),
        _step("ready", "the node is ready", workers),
    )
    return scope("workers", steps)
