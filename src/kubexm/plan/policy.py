"""How a node is retried, limited and tolerated: frozen values that travel with the graph."""

from __future__ import annotations

import math
from typing import Literal

import msgspec

FailureClass = Literal["unreachable", "refused", "failed"]
OnFailure = Literal["isolate", "fail-fast", "rollback"]


class RetryPolicy(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """How often a unit is tried, and how long to wait in between."""

    attempts: int = 1
    delay: float = 1.0
    exponential_backoff: bool = False
    max_delay: float = 300.0
    jitter: float = 0.0
    retry_on: tuple[FailureClass, ...] = ("failed",)
    waits_again: bool = True
    """Whether what has waited for something until its time was up begins to wait anew."""

    def pause(self, attempt: int, chance: float) -> float:
        """Seconds to wait after this failed attempt; `chance` in [0, 1) spreads the herd."""
        factor = 2.0 ** min(attempt - 1, 64) if self.exponential_backoff else 1.0
        base = min(self.delay * factor, self.max_delay)
        return base * (1.0 + self.jitter * chance)


class ResourceConstraints(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """What a unit needs free before it starts; zero means no limit of its own."""

    max_concurrency_per_host: int = 0
    global_concurrency_limit: int = 0
    pools: tuple[str, ...] = ()


class Pool(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A named number of slots that guard `run`, for the whole run or for each host."""

    size: int
    scope: Literal["run", "host"] = "run"


class Allowance(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """So many failures, or such a share of a node's hosts, are no failure of the node."""

    count: int = 0
    percent: float = 0.0

    def admits(self, failures: int, hosts: int) -> bool:
        """Whether this many failures on a node of this many hosts are tolerated."""
        return failures <= max(self.count, math.floor(hosts * self.percent / 100.0))


ALL_HOSTS = Allowance(percent=100.0)
NO_HOST = Allowance()


class Tolerance(
    msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """What a node tolerates, per class of failure.

    A dead host never stops the others unless the plan says so, hence the default for
    `unreachable`; how many may be lost in all is bounded by the minimum of a host group.
    """

    unreachable: Allowance = ALL_HOSTS
    refused: Allowance = NO_HOST
    failed: Allowance = NO_HOST

    def of(self, failure: FailureClass) -> Allowance:
        """The allowance for this class."""
        if failure == "failed":
            return self.failed
        return self.unreachable if failure == "unreachable" else self.refused


class HostGroup(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Hosts of which at least `minimum` must stay in the run, or it stops."""

    name: str
    hosts: tuple[str, ...]
    minimum: int = 0
