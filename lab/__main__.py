"""The lab's command line: `python -m lab COMMAND`, in the repository's root."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lab import (
    building,
    demolition,
    faults,
    images,
    network,
    quickstart,
    report,
    requirements,
    roster,
    workplace,
)
from lab import site as sites
from lab.errors import LabError
from lab.requirements import Missing
from lab.roster import Host
from lab.site import Site
from lab.software import command as software

if TYPE_CHECKING:
    _Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_SPECIAL = "gate (passwords only), bastion, hidden (behind the bastion)"
_SWITCHES = (
    *(faults.stop, faults.start, faults.kill, faults.reboot, faults.freeze, faults.thaw),
    *(faults.cut, faults.mend, faults.fill, faults.unfill, faults.heal),
)
_MEASURES: tuple[tuple[Callable[..., None], str, type], ...] = (
    (faults.loss, "PERCENT", float),
    (faults.delay, "MILLISECONDS", int),
    (faults.skew, "SECONDS", int),
)
_FAILED = 1
_CANT_RUN_HERE = 2
_INTERRUPTED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    options = _parser().parse_args(words)
    try:
        code = options.command(options)
    except Missing as missing:
        print(missing, file=sys.stderr)
        return _CANT_RUN_HERE
    except PermissionError as error:
        print(f"lab: {error.strerror}: `{error.filename}`; only root can do this", file=sys.stderr)
        return _FAILED
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        print("lab: interrupted; `down` removes what there is so far", file=sys.stderr)
        return _INTERRUPTED
    assert isinstance(code, int)
    return code


def _up(options: argparse.Namespace) -> int:
    wanted = _wanted(options)
    new = wanted if sites.find(options.path) is None else ()
    requirements.check(requirements.this_machine(), len(new))
    begun = time.monotonic()
    site = building.up(options.path, wanted, lambda line: print(line, flush=True))
    print(f"the lab is up after {time.monotonic() - begun:.1f} s, in {site.path}")
    return 0


def _images(_options: argparse.Namespace) -> int:
    requirements.check(requirements.this_machine())
    for suite in roster.Suite:
        print(f"{suite}: {images.ready(suite)}")
    return 0


def _wanted(options: argparse.Namespace) -> tuple[Host, ...]:
    if options.standard:
        return roster.standard()
    return roster.roster(options.hosts, options.trixie, options.special)


def _down(options: argparse.Namespace) -> int:
    was_there = demolition.down(options.path)
    print("the lab is gone" if was_there else f"there is no lab in {options.path}")
    return 0


def _status(options: argparse.Namespace) -> int:
    site = sites.require(options.path)
    text = json.dumps(report.description(site), indent=2) if options.json else report.table(site)
    print(text)
    return 0


def _run(options: argparse.Namespace) -> int:
    site = sites.require(options.path)
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    if not words:
        raise LabError("say what to run: `python -m lab run -- COMMAND ...`")
    _become(site, *words)
    return 0


def _shell(options: argparse.Namespace) -> int:
    site = sites.require(options.path)
    if options.host:
        host = site.host(options.host)
        user = "admin" if host.entry is roster.Entry.PASSWORD else "root"
        _become(site, "ssh", "-F", str(site.ssh_config), f"{user}@{host.name}")
    _become(site, os.environ.get("SHELL", "/bin/sh"))
    return 0


def _fault(options: argparse.Namespace) -> int:
    site = sites.require(options.path)
    with sites.locked(options.path):
        options.fault(site, options.host, *options.values)
    print(f"{options.host}: {report.state(site, site.host(options.host))}")
    return 0


def _become(site: Site, *words: str) -> None:
    """Be a command in the lab's network from here on."""
    sys.stdout.flush()
    inside = (*network.inside(site.netns), *words)
    os.execvpe(inside[0], inside, workplace.variables(site, os.environ))  # noqa: S606 - no shell


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description=__doc__)
    parser.add_argument(
        "--path",
        type=sites.place,
        default=sites.default_place(),
        help="the directory of the lab (KUBEXM_LAB, else .lab)",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_up(commands)
    _command(commands, "images", _images, "build the images that are missing, and nothing else")
    _command(commands, "down", _down, "take the lab down; nothing of it stays")
    status = _command(commands, "status", _status, "how the hosts are")
    status.add_argument("--json", action="store_true", help="all that a test needs to know")
    run = _command(commands, "run", _run, "run a command of this machine in the lab's network")
    run.add_argument("words", nargs=argparse.REMAINDER, metavar="-- COMMAND ...")
    shell = _command(commands, "shell", _shell, "a shell in the lab's network, or on a host")
    shell.add_argument("host", nargs="?", help="log in there")
    _add_faults(_command(commands, "fault", _fault, "make something go wrong, or right again"))
    quickstart.add_options(_command(commands, "quickstart", quickstart.run, quickstart.TEXT))
    software.add_options(_command(commands, "software", software.run, software.TEXT))
    return parser


def _add_faults(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("host")
    kinds = parser.add_subparsers(required=True, metavar="FAULT")
    for act in _SWITCHES:
        kinds.add_parser(act.__name__, help=act.__doc__).set_defaults(fault=act, values=())
    for measured, unit, of in _MEASURES:
        kind = kinds.add_parser(measured.__name__, help=measured.__doc__)
        kind.set_defaults(fault=measured)
        kind.add_argument("values", nargs=1, type=of, metavar=unit)


def _add_up(commands: _Commands) -> None:
    up = _command(commands, "up", _up, "make what is missing of a lab, and start it")
    up.add_argument("--hosts", type=int, default=0, metavar="N", help="node1 to nodeN, Debian 12")
    up.add_argument("--trixie", type=int, default=0, metavar="N", help="hosts with Debian 13")
    up.add_argument("--special", nargs="+", default=(), metavar="NAME", help=_SPECIAL)
    up.add_argument("--standard", action="store_true", help="the hosts that the tests stand on")


def _command(
    commands: _Commands, name: str, act: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(command=act)
    return parser


if __name__ == "__main__":
    sys.exit(main())
