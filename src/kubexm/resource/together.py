"""Many things done at the same time, of which some may fail without stopping the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from kubexm.errors import InvalidInput, Refused, StepFailed

Job = Callable[[], Awaitable[object]]


async def failures(jobs: Sequence[Job]) -> list[str]:
    """Do all of them; what those say that failed.

    What is nobody's own fault, such as a full disk, ends all of them and is raised.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_failure(job)) for job in jobs]
    except ExceptionGroup as several:
        raise several.exceptions[0] from None
    return [failure for task in tasks if (failure := task.result())]


def in_turn(jobs: Sequence[Job], at_once: int) -> list[Job]:
    """The same ones, of which only so many are under way at a time."""
    slots = asyncio.Semaphore(at_once)
    return [partial(_in_slot, slots, job) for job in jobs]


async def _in_slot(slots: asyncio.Semaphore, job: Job) -> None:
    async with slots:
        await job()


async def _failure(job: Job) -> str:
    try:
        await job()
    except (InvalidInput, Refused, StepFailed) as error:
        return str(error)
    return ""
