"""Names and scopes: the decorators that make a function a task, a module or a pipeline.

All three are the same thing, a function that returns a fragment of graph, or None when it is
not required. The decorator gives the fragment its path, and the function the context of that scope.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Literal, ParamSpec, Protocol, get_args, runtime_checkable

import msgspec

from kubexm.errors import InvalidGraph
from kubexm.plan.fragment import ExecutionFragment, chain, per_host, prefixed, replace
from kubexm.plan.node import Compensation, Hook

P = ParamSpec("P")
Planner = Callable[P, ExecutionFragment | None]
Moment = Literal["pre", "post", "on-failure", "always"]
MOMENTS: tuple[Moment, ...] = get_args(Moment)


class HookFragment(msgspec.Struct, frozen=True):
    """A fragment to run at a moment of a scope; with `barrier`, once for all its hosts."""

    moment: Moment
    fragment: ExecutionFragment
    barrier: bool = False


def task(name: str) -> Callable[[Planner[P]], Planner[P]]:
    """The function plans one component."""
    return _scoped("task", name)


def module(name: str) -> Callable[[Planner[P]], Planner[P]]:
    """The function links the tasks of one area."""
    return _scoped("module", name)


def pipeline(name: str) -> Callable[[Planner[P]], Planner[P]]:
    """The function links modules into one operation."""
    return _scoped("pipeline", name)


@runtime_checkable
class Context(Protocol):
    """What a planner decides by, if it knows the scopes that are being planned."""

    def within(self, scope: str, name: str) -> AbstractContextManager[Any]:
        """The same for a part, for as long as that is planned."""


def _scoped(scope: str, name: str) -> Callable[[Planner[P]], Planner[P]]:
    def decorate(plan: Planner[P]) -> Planner[P]:
        if not (plan.__doc__ or "").strip():
            raise InvalidGraph(f"`{name}` has no docstring, which its users read")

        @functools.wraps(plan)
        def planned(*args: P.args, **kwargs: P.kwargs) -> ExecutionFragment | None:
            with ExitStack() as stack:
                inner, named = _narrowed(scope, name, stack, args, kwargs)
                return prefixed(name, plan(*inner, **named))

        return planned

    return decorate


def _narrowed(
    scope: str, name: str, stack: ExitStack, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, Any]:
    """The same arguments, with every context among them that of the scope."""

    def narrow(value: Any) -> Any:
        if not isinstance(value, Context):
            return value
        return stack.enter_context(value.within(scope, name))

    return [*map(narrow, args)], {key: narrow(value) for key, value in kwargs.items()}


def scope(
    name: str,
    body: ExecutionFragment | None,
    *,
    hooks: Sequence[HookFragment] = (),
    compensate: ExecutionFragment | None = None,
) -> ExecutionFragment | None:
    """The body under a name, with its hooks and what undoes it; None if there is no body."""
    if body is None or not body.nodes:
        return None
    whole = with_hooks(body, hooks)
    undo = prefixed("@compensate", compensate)
    if undo is not None:
        mine = Compensation("", undo.nodes, undo.joins)
        whole = replace(whole, compensations=(*whole.compensations, mine))
    return prefixed(name, whole)


def hooked(
    name: str, whole: ExecutionFragment | None, hooks: Sequence[HookFragment]
) -> ExecutionFragment | None:
    """What a planner of this name has made, with hooks around it."""
    if whole is None or not hooks:
        return whole
    return scope(name, _bare(name, whole), hooks=hooks)


def _bare(name: str, whole: ExecutionFragment) -> ExecutionFragment:
    """The same without the name in front of its paths."""

    def own(ids: Sequence[str]) -> tuple[str, ...]:
        return tuple(id.removeprefix(f"{name}/") for id in ids)

    return replace(
        whole,
        nodes=tuple(
            replace(
                node,
                id=node.id.removeprefix(f"{name}/"),
                after=own(node.after),
                after_same_host=own(node.after_same_host),
            )
            for node in whole.nodes
        ),
        joins=tuple(
            replace(
                join,
                id=join.id.removeprefix(f"{name}/"),
                after=own(join.after),
                after_same_host=own(join.after_same_host),
            )
            for join in whole.joins
        ),
    )


def with_hooks(body: ExecutionFragment, hooks: Sequence[HookFragment]) -> ExecutionFragment:
    """The body between its hooks, in the order pre, body, post, on-failure, always.

    What follows waits for the last hook alone: a hook hands on the failure of its scope.
    """
    whole = body
    for moment in MOMENTS:
        numbered = list(enumerate([hook for hook in hooks if hook.moment == moment], 1))
        # Each pre hook is put before all that stands already, hence the first of them last.
        for number, hook in reversed(numbered) if moment == "pre" else numbered:
            whole = _with_hook(whole, body, hook, number)
    return whole


def _with_hook(
    whole: ExecutionFragment, body: ExecutionFragment, hook: HookFragment, number: int
) -> ExecutionFragment:
    # On a host where the scope does nothing there is nothing to follow but the whole scope.
    hosts = {host for node in body.nodes for host in node.hosts}
    elsewhere = any(not hosts.issuperset(node.hosts) for node in hook.fragment.nodes)
    barrier = hook.barrier or elsewhere
    marked = _marked(hook, number, barrier)
    sequence = chain if barrier else per_host
    return sequence(marked, whole) if hook.moment == "pre" else sequence(whole, marked)


def _marked(hook: HookFragment, number: int, barrier: bool) -> ExecutionFragment | None:
    moved = prefixed(f"@{hook.moment}-{number}", hook.fragment)
    if moved is None:
        return None
    mark = Hook("", hook.moment, barrier)
    return replace(moved, nodes=tuple(replace(node, hook=mark) for node in moved.nodes))
