"""Values that units leave for others: who provides them, what they are, how long they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubexm.engine.topology import NodeState, Unit
from kubexm.errors import StepFailed
from kubexm.plan.events import ProducedValue
from kubexm.plan.node import ExecutionNode
from kubexm.runtime.contexts import Unmade


class Values:
    """All values of a run."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], ProducedValue] = {}
        self._run_wide: dict[str, NodeState] = {}
        self._by_host: dict[tuple[str, str], NodeState] = {}

    def kept(self, earlier: Iterable[ProducedValue]) -> Values:
        """The same values, or those of before, and nobody to make another."""
        values = Values()
        values.keep(earlier)
        values._values.update(self._values)
        return values

    def register(self, states: Iterable[NodeState]) -> None:
        """Learn which of these nodes provide what."""
        for state in states:
            for key in state.spec.step.provides:
                if key.scope == "run":
                    self._run_wide[key.name] = state
                else:
                    for host in state.spec.hosts:
                        self._by_host[key.name, host] = state

    def refuse_rivals(self, nodes: Iterable[ExecutionNode]) -> None:
        """Raise `StepFailed` if one of these leaves a value that another node leaves already."""
        for node in nodes:
            for key in node.step.provides:
                rivals = [self._run_wide.get(key.name)]
                rivals += [self._by_host.get((key.name, host)) for host in node.hosts]
                for rival in rivals:
                    if rival is not None:
                        said = f"provides `{key.name}`, and so does `{rival.id}`"
                        raise StepFailed(said, where=node.id)

    def provider(self, key: str, host: str) -> Unit | None:
        """The unit that leaves this value for this host."""
        if (state := self._run_wide.get(key)) is not None:
            return next(iter(state.units.values()))
        state = self._by_host.get((key, host))
        return state.units.get(host) if state is not None else None

    def keep(self, values: Iterable[ProducedValue]) -> None:
        for value in values:
            self._values[value.key, value.host] = value

    def fresh(self, key: str, host: str, now: float) -> bool:
        """Whether the value is there and has not expired."""
        value = self._find(key, host)
        return value is not None and (value.expires is None or now < value.expires)

    def require(self, needs: Iterable[str], host: str, *, minted: bool) -> None:
        """Raise `StepFailed` if a value is not there; those to be minted only if asked for."""
        for key in needs:
            if self._find(key, host) is not None:
                continue
            provider = self.provider(key, host)
            if provider is None:
                raise StepFailed(f"needs the value `{key}`, which nothing provides on `{host}`")
            if minted or not provider.node.work.minted:
                said = provider.result.message if provider.result is not None else "did not run"
                where = f"`{provider.node.id}` on `{provider.host}`"
                raise StepFailed(f"needs the value `{key}`, but {where} left none: {said}")

    def view(self, needs: Iterable[str], host: str) -> Mapping[str, Any]:
        """The values a unit on this host asked for; one not minted yet is an empty text."""
        found: dict[str, Any] = {}
        for key in needs:
            if (value := self._find(key, host)) is not None:
                found[key] = value.value
            elif (provider := self.provider(key, host)) is not None and provider.node.work.minted:
                found[key] = Unmade()
        return found

    def _find(self, key: str, host: str) -> ProducedValue | None:
        return self._values.get((key, "")) or self._values.get((key, host))


def produced(
    node: ExecutionNode, host: str, values: Mapping[str, Any], now: float
) -> tuple[ProducedValue, ...]:
    """What a unit leaves, checked against what it promised to leave."""
    promised = {key.name: key for key in node.step.provides}
    if promised.keys() != values.keys():
        raise StepFailed(
            f"left the values {sorted(values)}, but promised {sorted(promised)}", where=node.id
        )
    return tuple(
        ProducedValue(
            key=name,
            host=host if key.scope == "host" else "",
            value=_as_json(node, name, values[name]),
            secret=key.secret,
            expires=now + key.ttl if key.ttl is not None else None,
        )
        for name, key in promised.items()
    )


def _as_json(node: ExecutionNode, name: str, value: Any) -> Any:
    """The value as it comes back from the journal, so that a resumed run sees the same."""
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        said = f"left the value `{name}`, which is no JSON: {error}"
        raise StepFailed(said, where=node.id) from error
