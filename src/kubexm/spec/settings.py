"""What a step inherits from the task, the module and the pipeline around it."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from kubexm.common.roles import ALL
from kubexm.document.fields import percent
from kubexm.plan import Allowance, ResourceConstraints, RetryPolicy, Tolerance
from kubexm.spec.model import LimitsSpec, RetrySpec, ScopeFields, StepFields, ToleranceSpec


class Settings(msgspec.Struct, frozen=True):
    """Settings in force at a place of the file; the nearest one that says something wins."""

    roles: tuple[str, ...] = (ALL,)
    retry: RetryPolicy | None = None
    timeout: float | None = None
    tolerance: Tolerance | None = None
    ignore_errors: bool = False
    tags: tuple[str, ...] = ()

    def within(self, spec: ScopeFields | StepFields) -> Settings:
        """The settings inside of this scope or step."""
        tags = (*self.tags, *(tag for tag in spec.tags if tag not in self.tags))
        return replace(
            self,
            roles=spec.run_on_roles or self.roles,
            retry=self.retry if spec.retry is None else retry_policy(spec.retry),
            timeout=self.timeout if spec.timeout is None else spec.timeout,
            tolerance=_tolerance(self.tolerance, spec.tolerance),
            ignore_errors=self.ignore_errors if spec.ignore_errors is None else spec.ignore_errors,
            tags=tags,
        )


def retry_policy(spec: RetrySpec) -> RetryPolicy:
    """The policy that a file describes."""
    return RetryPolicy(
        attempts=spec.attempts,
        delay=spec.delay,
        exponential_backoff=spec.exponential_backoff,
        max_delay=spec.max_delay,
        jitter=spec.jitter,
        retry_on=spec.retry_on,
    )


def constraints(spec: LimitsSpec | None) -> ResourceConstraints | None:
    """The limits that a file describes."""
    if spec is None:
        return None
    return ResourceConstraints(
        max_concurrency_per_host=spec.max_concurrency_per_host or 0,
        global_concurrency_limit=spec.global_concurrency_limit or 0,
        pools=spec.pools,
    )


def _tolerance(outer: Tolerance | None, spec: ToleranceSpec | None) -> Tolerance | None:
    """Class by class: a scope that speaks of one class leaves the others as they are."""
    if spec is None:
        return outer
    known = outer or Tolerance()
    return Tolerance(
        unreachable=_allowance(spec.unreachable, known.unreachable),
        refused=_allowance(spec.refused, known.refused),
        failed=_allowance(spec.failed, known.failed),
    )


def _allowance(share: int | str | None, otherwise: Allowance) -> Allowance:
    if share is None:
        return otherwise
    if isinstance(share, int):
        return Allowance(count=share)
    return Allowance(percent=percent(share) or 0.0)
