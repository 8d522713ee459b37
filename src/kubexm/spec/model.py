"""What a pipeline file may say: a pipeline of modules, of tasks, of steps, as frozen data.

No behaviour lives here: `planner` turns a `PipelineSpec` into a graph.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from kubexm.config.ssh import SshSpec
from kubexm.document.fields import (
    Address,
    Count,
    Duration,
    HostName,
    Name,
    PositiveDuration,
    Share,
    Text,
)
from kubexm.document.forms import Filled, Form, Range, called, empty
from kubexm.plan.policy import FailureClass, OnFailure
from kubexm.spec.fields import Condition, Entries, OwnRole, VariableName
from kubexm.step import registry

# No file can hold a zero byte, so these keys are ours alone.
KIND_KEY = "\0kind"
PARAMS_KEY = "\0params"

Link = Literal["per-host", "barrier", "parallel"]


class RetrySpec(Form):
    """How often a unit is tried, and how long to wait in between."""

    attempts: Annotated[int, Range(1, 1000)]
    """How many times it is tried in all."""
    delay: Duration = 1.0
    """The wait before the next attempt."""
    exponential_backoff: bool = False
    """Double the wait after every attempt."""
    max_delay: Duration = 300.0
    """The longest wait that doubling leads to."""
    jitter: Annotated[float, Range(0, 10)] = 0.0
    """A random part added to each wait: `0.5` for up to half of it."""
    retry_on: tuple[FailureClass, ...] = ("failed",)
    """The classes of failure that are worth another attempt."""


class LimitsSpec(Form):
    """What a unit of a step needs free before it starts."""

    max_concurrency_per_host: Count | None = None
    """While it runs, at most so many units run on that host; `1` means alone."""
    global_concurrency_limit: Count | None = None
    """At most so many units of this step run at once, over all hosts."""
    pools: tuple[Name, ...] = ()
    """Names of the pools it takes a slot from."""


class PoolSpec(Form):
    """A named number of slots; `download: 4` is short for `download: {size: 4}`."""

    size: Count
    """How many units may hold a slot at once."""
    scope: Literal["run", "host"] = "run"
    """Whether the slots are shared by the whole run or each host has its own."""

    @classmethod
    def short(cls, data: Any) -> Any:
        return {"size": data} if isinstance(data, int) else data


class ToleranceSpec(Form):
    """How many hosts of a step may fail, by class of failure, before what follows is held back.

    A share is taken of the hosts of the step and rounded down; with `rolling`, of each batch.
    """

    unreachable: Share | None = None
    """Hosts that can't be reached; all of them unless it is said here."""
    refused: Share | None = None
    """Hosts on which a check or an assertion said no; none unless it is said here."""
    failed: Share | None = None
    """Hosts on which a step failed; none unless it is said here."""


class GroupSpec(Form):
    """Hosts that have something in common.

    A host wins over its groups, and these over the pipeline, setting by setting. Two groups that
    give one host different values are refused.
    """

    roles: Annotated[tuple[Name, ...], Filled()]
    """The roles whose hosts belong to the group."""
    minimum: Count | None = None
    """The run stops when fewer of them are left."""
    labels: dict[str, str] = empty(dict)
    """Labels of these hosts."""
    vars: dict[VariableName, Any] = empty(dict)
    """Variables of these hosts."""
    sudo: bool | None = None
    """Run commands on these hosts as root."""
    ssh: SshSpec | None = None
    """How these hosts are reached."""


class AfterSpec(Form):
    """One more edge from a sibling; a bare name is short for `{name: …}`."""

    name: Name
    """The step, task or module beside this one to wait for."""
    scope: Literal["all", "host"] | None = None
    """`all`: wait for every host of it. `host`: each host waits for itself alone.
    Between steps `host` is the default, between tasks and between modules `all`."""

    @classmethod
    def short(cls, data: Any) -> Any:
        return {"name": data} if isinstance(data, str) else data


class RollingSpec(Form):
    """A few hosts at a time, the next ones only when these are through."""

    batch: Count
    """How many hosts go together. Batches are called `batch-1`, `batch-2` and so on in paths; with
    `1`, each has the name of its host."""


class StepFields(Form):
    """What steps and hooks have in common; one more key is the kind of the step."""

    name: Name
    """What the step is called in paths, logs and results."""
    kind: str = called(KIND_KEY)
    params: dict[str, Any] = called(PARAMS_KEY)
    run_on_roles: Annotated[tuple[Name, ...], Filled()] | None = None
    """The roles whose hosts it runs on; `all` for every host of the inventory, without
    `control-node`, which is the machine kubexm runs on. Inherited from the task, the module, the
    pipeline; `all` if none of them says it."""
    run_on_one_of: Annotated[tuple[Name, ...], Filled()] | None = None
    """Run on one host of these roles: the first that is still in the run when it starts."""
    when: Condition | None = None
    """An expression decided for each unit; where it is false there is nothing to do."""
    for_each: Entries | None = None
    """A list, or a variable that holds one: the step once per entry, with `${item}`."""
    retry: RetrySpec | None = None
    """How often it is tried."""
    limits: LimitsSpec | None = None
    """How many units of it may run at once, and which pools they use."""
    timeout: PositiveDuration | None = None
    """The longest that one attempt may take."""
    tolerance: ToleranceSpec | None = None
    """How many of its hosts may fail."""
    ignore_errors: bool | None = None
    """A failure is reported, and what follows goes on."""
    tags: tuple[Name, ...] = ()
    """Words to select it by."""

    @classmethod
    def short(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        kind = kind_key(data, cls)
        if kind is None:
            return data
        given = data[kind]
        rest = {key: value for key, value in data.items() if key != kind}
        return {**rest, KIND_KEY: kind, PARAMS_KEY: {} if given is None else given}

    def as_written(self) -> dict[str, Any]:
        data: dict[str, Any] = super().as_written()
        del data[KIND_KEY], data[PARAMS_KEY]
        return {**data, self.kind: self.params}


class HookSpec(StepFields):
    """A step that runs at a moment of a pipeline, module, task or step."""

    barrier: bool = False
    """Wait for all hosts of the scope, not for each host alone."""


class HooksSpec(Form):
    """Hooks by moment; a failure of a hook is a failure of its scope, but triggers no other hook.

    Hosts that are quarantined run no hooks, and a run that is cancelled starts none until it is
    resumed: `always` hooks neither. A retry runs hooks again around what it tries again.
    """

    pre: tuple[HookSpec, ...] = ()
    """Before anything of the scope, which is held back if one fails."""
    post: tuple[HookSpec, ...] = ()
    """After the scope, if it succeeded."""
    on_failure: tuple[HookSpec, ...] = ()
    """After the scope, if something in it other than a hook failed."""
    always: tuple[HookSpec, ...] = ()
    """After the scope and its other hooks, whether it failed or not, once anything in it or `pre`
    was tried."""


class StepSpec(StepFields):
    """One step on some hosts."""

    after: tuple[AfterSpec, ...] = ()
    """Other steps of the task to wait for."""
    hooks: HooksSpec = HooksSpec()
    """Steps around this one."""


class ScopeFields(Form):
    """What pipelines, modules and tasks have in common; the nearest one that says it wins."""

    run_on_roles: Annotated[tuple[Name, ...], Filled()] | None = None
    """The roles whose hosts everything inside runs on, unless it says otherwise; `all`, which is
    every host but `control-node`, if nothing around says it."""
    retry: RetrySpec | None = None
    """How often each unit inside is tried."""
    timeout: PositiveDuration | None = None
    """The longest that one attempt of a unit inside may take."""
    tolerance: ToleranceSpec | None = None
    """How many hosts of each step inside may fail."""
    ignore_errors: bool | None = None
    """Failures inside are reported, and what follows goes on."""
    tags: tuple[Name, ...] = ()
    """Words to select everything inside by."""
    hooks: HooksSpec = HooksSpec()
    """Steps at the moments of this scope."""
    compensate: tuple[StepSpec, ...] = ()
    """Steps that undo the whole scope in a rollback, in place of the undo of each unit."""


class TaskSpec(ScopeFields):
    """The steps of one component."""

    name: Name
    """What the task is called in paths."""
    link: Link = "per-host"
    """How its steps follow each other: each host for itself, all together, or not at all."""
    after: tuple[AfterSpec, ...] = ()
    """Other tasks of the module to wait for."""
    rolling: RollingSpec | None = None
    """Go through the hosts in batches."""
    steps: Annotated[tuple[StepSpec, ...], Filled()]
    """The steps, in order."""


class ModuleSpec(ScopeFields):
    """The tasks of one area."""

    name: Name
    """What the module is called in paths."""
    link: Link = "barrier"
    """How its tasks follow each other: each host for itself, all together, or not at all."""
    after: tuple[AfterSpec, ...] = ()
    """Other modules to wait for."""
    rolling: RollingSpec | None = None
    """Go through the hosts in batches, all tasks for each batch."""
    tasks: Annotated[tuple[TaskSpec, ...], Filled()]
    """The tasks, in order."""


Amount = Annotated[int, Range(0)]


class SystemSpec(Form):
    """What a host says of its operating system."""

    id: Text | None = None
    """Its short name, such as `debian`."""
    family: Text | None = None
    """What it is a kind of: `debian`, `rhel`, `suse`, or its own short name."""
    version: Text | None = None
    """Its version, such as `"12"`."""
    name: Text | None = None
    """Its name for people."""
    like: tuple[Text, ...] = ()
    """The systems it is like, by their short names."""


class DiskSpec(Form):
    """A disk of a host."""

    @staticmethod
    def written(name: str) -> str:
        return name

    name: Text
    """What the kernel calls it, such as `sda`."""
    size_mib: Amount | None = None
    """Its size, in MiB."""
    type: Text | None = None
    """`nvme`, `ssd` or `hdd`; a virtual disk is what it pretends to be."""
    model: Text | None = None
    """What its maker calls it, if it tells."""


class FilesystemSpec(Form):
    """A file system of a host that lies on a disk."""

    @staticmethod
    def written(name: str) -> str:
        return name

    path: Text
    """Where it is mounted."""
    type: Text | None = None
    """Its kind, such as `ext4`."""
    size_mib: Amount | None = None
    """Its size, in MiB."""
    free_mib: Amount | None = None
    """How much of it is free for everyone, in MiB."""


class NetworkSpec(Form):
    """The way from a host to the rest of the world."""

    @staticmethod
    def written(name: str) -> str:
        return name

    interface: Text | None = None
    """The interface of the default route."""
    gateway: Text | None = None
    """The address that the default route goes to."""
    mtu: Count | None = None
    """The largest packet of that interface, in bytes."""
    mac: Text | None = None
    """The hardware address of that interface."""
    others: dict[str, Text] = empty(dict)
    """The interfaces of its other addresses, by address: of those that are not at that one."""
    nameservers: tuple[Text, ...] | None = None
    """Who is asked for names, systemd-resolved passed by; nobody if the list is empty."""
    resolv_conf: Text | None = None
    """The file that has them: `/etc/resolv.conf`, or that of systemd-resolved."""


class ClockSpec(Form):
    """The clock of a host beside that of the control node."""

    @staticmethod
    def written(name: str) -> str:
        return name

    offset_s: float | None = None
    """By how many seconds it is ahead; less than 0 if it is behind."""
    within_s: float | None = None
    """How many seconds the offset may be wrong by: half of the time that the question took."""
    kept: bool | None = None
    """Whether something keeps the time, such as chrony or systemd-timesyncd."""


class FactsSpec(Form):
    """What a host tells of itself, as far as it is declared."""

    @staticmethod
    def written(name: str) -> str:
        return name  # as references write it

    os: SystemSpec | None = None
    """Its operating system."""
    kernel: Text | None = None
    """The release of its kernel."""
    arch: Text | None = None
    """Its architecture, as `uname -m` says it: `x86_64`, `aarch64`."""
    cpus: Count | None = None
    """How many processors it has."""
    memory_mib: Count | None = None
    """How much memory it has, in MiB."""
    swap_mib: Amount | None = None
    """How much swap it has, in MiB; 0 if there is none."""
    disks: tuple[DiskSpec, ...] = ()
    """Its disks, by name."""
    filesystems: tuple[FilesystemSpec, ...] = ()
    """Its file systems that lie on disks, by path: the first is that of `/`."""
    hostname: Text | None = None
    """What it calls itself."""
    boot_id: Text | None = None
    """Another at each boot."""
    machine_id: Text | None = None
    """The same at each boot."""
    product_uuid: Text | None = None
    """What its maker, or the cloud, calls it; told to root alone."""
    addresses: tuple[Text, ...] = ()
    """Its IP addresses, in the order of its interfaces, those of IPv4 first."""
    network: NetworkSpec | None = None
    """Its default route."""
    ports: dict[str, str] = empty(dict)
    """Ports at which somebody listens, such as `tcp/22`, and the program that does; its name is
    empty unless it is told to root. `'tcp/22' in facts.ports` asks for one."""
    clock: ClockSpec | None = None
    """Its clock beside that of the control node, when the facts were gathered."""
    init: Text | None = None
    """Its first process: `systemd`, or what that is called."""
    cgroup: Count | None = None
    """The version of its control groups: 1 or 2."""
    selinux: Text | None = None
    """`enforcing`, `permissive` or `disabled`."""
    package_manager: Text | None = None
    """`apt`, `dnf`, `yum` or `zypper`."""
    runtimes: tuple[Text, ...] = ()
    """The container runtimes that are installed: `containerd`, `docker`, `cri-o`."""


class HostSpec(Form):
    """A machine, or several that are alike, by a [range](#ranges) in the name."""

    name: HostName
    """What it is called in paths, logs and results."""
    address: Address | None = None
    """Where it is reached; its name if nothing is said."""
    connection: Literal["ssh", "local"] = "ssh"
    """How it is reached; `local` is the machine kubexm runs on."""
    roles: tuple[OwnRole, ...] = ()
    """What it is for; `runOnRoles` chooses by these."""
    labels: dict[str, str] = empty(dict)
    """Words about it for expressions: `host.labels.zone == 'a'`."""
    vars: dict[VariableName, Any] = empty(dict)
    """Variables of this host; they win over those of its groups and of the pipeline."""
    facts: FactsSpec = FactsSpec()
    """What is known of it before it is asked: `kubexm plan` goes by these, and where they say
    nothing by what the host told in the last run. A run goes by what the host tells."""
    sudo: bool | None = None
    """Run commands as root; `false` if neither the host nor a group of it says it."""
    ssh: SshSpec | None = None
    """How it is reached; not for `connection: local`."""


class PipelineBody(ScopeFields):
    """The pipeline itself."""

    hosts: tuple[HostSpec, ...] = ()
    """The inventory; the control node is there without being named."""
    roles: tuple[OwnRole, ...] = ()
    """Roles that may have no host: what runs on them is then left out. Any other role that no host
    has is a mistake."""
    vars: dict[VariableName, Any] = empty(dict)
    """Variables of all hosts, for `${vars.NAME}`; `--set NAME=VALUE` wins over them."""
    ssh: SshSpec | None = None
    """How hosts are reached, unless a group or a host says otherwise."""
    pools: dict[Name, PoolSpec] = empty(dict)
    """Named slots that `limits.pools` of a step refers to."""
    groups: dict[Name, GroupSpec] = empty(dict)
    """Hosts that share settings, or of which a minimum must stay in the run."""
    on_failure: OnFailure = "isolate"
    """What a failure leads to: skip what depends on it, start nothing new, or undo the run."""
    link: Link = "barrier"
    """How the modules follow each other: each host for itself, all together, or not at all."""
    modules: Annotated[tuple[ModuleSpec, ...], Filled()]
    """The modules, in order."""
    simulate: dict[str, Any] = empty(dict)
    """How simulated hosts behave under `--simulate`; has no effect otherwise."""


class Metadata(Form):
    """What the pipeline is called."""

    name: Name
    """The name of the pipeline: the first word of all paths, and what the run lock is held for."""


class PipelineSpec(Form):
    """A pipeline file."""

    api_version: Literal["kubexm.io/v1alpha1"]
    """The version of this format."""
    kind: Literal["Pipeline"]
    """What the file describes."""
    metadata: Metadata
    """What the pipeline is called."""
    spec: PipelineBody
    """The pipeline itself."""


def kind_key(data: Mapping[str, Any], model: type[Form] = StepSpec) -> str | None:
    """The key of a written step that says its kind; the first known one, if there are more."""
    kinds = registry.kinds()
    return next((key for key in data if key in kinds and key not in model.aliases()), None)


def as_data(spec: Form) -> dict[str, Any]:
    """The form as a file would say it, without what is the default."""
    data: dict[str, Any] = spec.as_written()
    return data
