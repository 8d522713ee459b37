"""Who answers on the network, as seen from a host."""

from __future__ import annotations

from kubexm.connector.base import C_LOCALE
from kubexm.errors import CommandFailed
from kubexm.runner.host import Command, Completed, Host

_PATIENCE = 5
_KNOCK = 'exec 3<>"/dev/tcp/$0/$1"'
_NOT_FOUND = 127


def port_command(host: Host, address: str, port: int) -> Command:
    """Knock at a port; success means that it is open."""
    knock = ("bash", "-c", _KNOCK, address, str(port))
    return host.command("timeout", str(_PATIENCE), *knock, sudo=False, env=C_LOCALE)


def url_command(host: Host, url: str) -> Command:
    """Ask for a URL; `status_of` reads the answer."""
    options = ("-s", "-S", "-o", "/dev/null", "-m", str(_PATIENCE), "-w", "%{http_code}")
    return host.command("curl", *options, "--", url, sudo=False, env=C_LOCALE)


def status_of(answer: Completed) -> int | None:
    """The status of the HTTP answer; None if there was none."""
    if answer.exit == _NOT_FOUND:
        raise CommandFailed(
            ("curl",), answer.exit, stderr=answer.error_text, hint="install curl on the host"
        )
    return int(answer.text) if answer.ok else None
