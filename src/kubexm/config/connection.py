"""How each host is reached by ssh: its settings as a run knows them, and the way to it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from kubexm.common.nearest import nearest
from kubexm.common.secrets import SecretRef
from kubexm.config.ssh import ConnectionFields, JumpSpec
from kubexm.document import beside
from kubexm.document.findings import Finding
from kubexm.document.given import Given, Givens
from kubexm.document.source import DataPath

MAX_JUMPS = 10
_PATHS = ("keys", "knownHosts", "config")
_KNOWN_HOSTS = ("~/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
_CONFIG = "~/.ssh/config"
_NOT_FOR_A_JUMP = ("jump", "become")
"""What a machine on the way does not take from the pipeline: that is for the hosts."""


class Become(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How commands come to run as root, where they do."""

    way: Literal["sudo", "su"] = "sudo"
    password: SecretRef | None = None


class SshSettings(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """How one machine is reached; paths are absolute, secrets are references."""

    user: str | None = None
    """Who logs in; None leaves it to the client configuration."""
    port: int | None = None
    keys: tuple[str, ...] = ()
    passphrase: SecretRef | None = None
    password: SecretRef | None = None
    agent: bool = False
    known_hosts: tuple[str, ...] = ()
    trust: Literal["known", "first-use"] = "known"
    jump: Jump | None = None
    """The machine that it is reached through, which may have one itself."""
    become: Become = Become()
    config: str | None = None
    """The client configuration; None for none."""


class Jump(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A machine on the way to another."""

    address: str
    ssh: SshSettings
    name: str = ""
    """What it is called, if it is a host of the inventory."""


def given(spec: ConnectionFields | None, place: DataPath) -> Givens:
    """The settings that are written here, by their keys."""
    if spec is None:
        return {}
    fields = spec.fields()
    values = {fields[name].alias: getattr(spec, name) for name in spec.given}
    return {key: Given(value, (*place, key)) for key, value in values.items() if value is not None}


def bad_paths(settings: Givens, directory: Path | None) -> Iterator[Finding]:
    """Paths that lead nowhere, as far as that shows without a look at the disk."""
    for key in _PATHS:
        if key in settings:
            yield from _bad_paths(settings[key], directory)
    if "jump" in settings:
        jump = settings["jump"]
        yield from bad_paths(given(jump.value, jump.place), directory)


def _bad_paths(one: Given, directory: Path | None) -> Iterator[Finding]:
    if isinstance(one.value, tuple):
        for number, text in enumerate(one.value):
            yield from _bad_paths(Given(text, (*one.place, number)), directory)
    elif one.value is not False:
        path = beside.expanded(one.value)
        if path is None:
            yield Finding(one.place, beside.nobodys(one.value), beside.WHOLE_PATH)
        elif directory is None and not path.is_absolute():
            message = "a relative path, and the file has no place that it could start from"
            yield Finding(one.place, message, "write the whole path")


class _Reached(msgspec.Struct, frozen=True):
    """A host as far as its connection is concerned."""

    address: str
    settings: Givens | None
    """None for this machine, which needs no connection."""


class Connections:
    """Settles the connections of hosts once all of them are known."""

    def __init__(self, around: Givens, directory: Path | None, *, is_partial: bool) -> None:
        self._around = {key: one for key, one in around.items() if key not in _NOT_FOR_A_JUMP}
        self._directory = directory
        self._is_partial = is_partial
        self._hosts: dict[str, _Reached] = {}
        self._same: dict[SshSettings, SshSettings] = {}
        self._found: dict[object, Finding] = {}
        self._known_paths: dict[str, str] = {}
        self._agent = bool(os.environ.get("SSH_AUTH_SOCK"))
        config = self._absolute(_CONFIG)
        self._config = config if Path(config).is_file() else None
        self._known_hosts = tuple(map(self._absolute, _KNOWN_HOSTS))

    def add(self, name: str, address: str, settings: Givens | None) -> None:
        """Note a host; without settings it is this machine."""
        self._hosts[name] = _Reached(address, settings)

    def of(self, name: str) -> SshSettings | None:
        """How a host is reached; hosts that are reached alike share one object."""
        settings = self._hosts[name].settings
        return None if settings is None else self._settled(settings, (name,))

    def findings(self) -> Iterator[Finding]:
        """What was wrong on the way to hosts, each once."""
        yield from self._found.values()

    def _settled(self, settings: Givens, way: tuple[str, ...]) -> SshSettings:
        def value(key: str, default: Any = None) -> Any:
            return settings[key].value if key in settings else default

        settled = SshSettings(
            user=value("user"),
            port=value("port"),
            keys=self._paths(value("keys", ())),
            passphrase=_secret(value("passphrase")),
            password=_secret(value("password")),
            agent=value("agent", self._agent),
            known_hosts=self._paths(value("knownHosts", self._known_hosts)),
            trust=value("trust", "known"),
            jump=self._jump(settings["jump"], way) if "jump" in settings else None,
            become=_become(value("become")),
            config=self._client_configuration(value("config")),
        )
        return self._same.setdefault(settled, settled)

    def _jump(self, one: Given, way: tuple[str, ...]) -> Jump | None:
        spec: JumpSpec = one.value
        if spec.host is not None:
            return self._through(spec.host, one, way)
        if spec.address is None:
            return None
        own = given(spec, one.place)
        return Jump(spec.address, self._settled({**self._around, **own}, (*way, spec.address)))

    def _through(self, name: str, one: Given, way: tuple[str, ...]) -> Jump | None:
        if name == way[-1] and one.place[1] != "hosts":
            return None  # what all others are reached through is reached directly
        host = self._hosts.get(name)
        if host is None or host.settings is None or name in way or len(way) > MAX_JUMPS:
            self._refuse(name, one, way)
            return None
        return Jump(host.address, self._settled(host.settings, (*way, name)), name)

    def _refuse(self, name: str, one: Given, way: tuple[str, ...]) -> None:
        host = self._hosts.get(name)
        if host is None:
            self._refuse_unknown(name, one)
        elif host.settings is None:
            hint = "name another host, or leave `jump` out"
            self._note(one, f"`{name}` is this machine, and no way to another", hint)
        elif name in way:
            ring = (*way[way.index(name) :], name)
            message = f"hosts are reached through each other: {' → '.join(ring)}"
            hint = "reach one of them directly, with `ssh: {jump: false}`"
            self._note(one, message, hint, key=frozenset(ring))
        else:
            message = f"a way of more than {MAX_JUMPS} jumps: {' → '.join((*way, name))}"
            self._note(one, message, "make it shorter", key="way")

    def _refuse_unknown(self, name: str, one: Given) -> None:
        if self._is_partial:
            return  # it may be among those that could not be read
        far = [known for known, host in self._hosts.items() if host.settings is not None]
        near = nearest(name, far)
        add = f"add it under `spec.hosts`, or write `jump: {{address: {name}}}`"
        hint = f"did you mean `{near}`?" if near else add
        self._note(one, f"there is no host `{name}` to jump through", hint)

    def _note(self, one: Given, message: str, hint: str, key: object = None) -> None:
        finding = Finding(one.place, message, hint)
        self._found.setdefault(finding if key is None else key, finding)

    def _client_configuration(self, value: str | Literal[False] | None) -> str | None:
        if value is None:
            return self._config
        return self._absolute(value) if value else None

    def _paths(self, texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(self._absolute, texts))

    def _absolute(self, text: str) -> str:
        if (known := self._known_paths.get(text)) is None:
            path = (self._directory or Path("/")) / (beside.expanded(text) or text)
            known = self._known_paths[text] = str(path)
        return known


def _secret(text: str | None) -> SecretRef | None:
    return None if text is None else SecretRef(text)


def _become(spec: Any) -> Become:
    return Become() if spec is None else Become(spec.way, _secret(spec.password))
