"""The words of a command of kubectl: its options, and the objects that it names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kubexm.errors import Refused
from kubexm.sim.apiserver import Api
from kubexm.sim.kubekinds import Kind
from kubexm.sim.kubeobjects import Rejected
from kubexm.sim.kubestore import Ref
from kubexm.sim.shell import Shell

_VALUED = frozenset(
    (
        *("-f", "-l", "-n", "-o", "-p", "--field-manager", "--field-selector", "--for"),
        *("--timeout", "--type"),
    )
)
_FLAGS = frozenset(
    (
        *("-A", "--delete-emptydir-data", "--force", "--force-conflicts", "--ignore-daemonsets"),
        *("--ignore-not-found", "--overwrite", "--server-side", "--wait=false"),
    )
)


class Words(msgspec.Struct, frozen=True):
    """What a command says after its verb."""

    shell: Shell
    api: Api
    operands: tuple[str, ...]
    options: Mapping[str, str]

    @property
    def namespace(self) -> str:
        """Where objects are looked for."""
        return self.option("-n") or "default"

    @property
    def stdin(self) -> bytes:
        """What a file called `-` holds."""
        if self.option("-f") != "-":
            raise self.unexpected()
        return self.shell.command.stdin

    def option(self, name: str) -> str:
        """The value of an option; nothing if it is not given."""
        return self.options.get(name, "")

    def has(self, name: str) -> bool:
        """Whether an option is given."""
        return name in self.options

    def require(self, *names: str) -> None:
        """Raise unless all of these options are given, without which kubectl does other things."""
        if not all(name in self.options for name in names):
            raise self.unexpected()

    def unexpected(self) -> Refused:
        """The error for words that nobody taught the simulation."""
        return self.shell.unexpected()

    def resource(self) -> tuple[Kind, tuple[str, ...]]:
        """The kind that is named, and the objects: `node a b`, `deployment/coredns`, `pods`."""
        if not self.operands:
            raise self.unexpected()
        word, *names = self.operands
        if "/" in word:
            word, _, name = word.partition("/")
            names = [name]
        found = self.api.cluster.kind_called(word)
        if found is None:
            raise Rejected(f'error: the server doesn\'t have a resource type "{word}"')
        return found, tuple(names)

    def ref(self, kind: Kind, name: str) -> Ref:
        """An object of the namespace that is meant."""
        return Ref(kind, self.namespace if kind.namespaced else "", name)


def read(shell: Shell, api: Api, args: Sequence[str]) -> Words:
    """The words of a command; an option that is not known is unexpected."""
    operands: list[str] = []
    options: dict[str, str] = {}
    rest = list(args)
    while rest:
        word = rest.pop(0)
        name, sign, value = word.partition("=")
        if name in _VALUED:
            if not sign and not rest:
                raise shell.unexpected()
            options[name] = value if sign else rest.pop(0)
        elif word in _FLAGS:
            options[word] = ""
        elif word.startswith("-"):
            raise shell.unexpected()
        else:
            operands.append(word)
    return Words(shell, api, tuple(operands), options)
