"""The programs a simulated host has, and how a command finds its program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from posixpath import basename

from kubexm.connector.base import Completed
from kubexm.sim import (
    archives,
    balancers,
    clock,
    coreutils,
    crictl,
    ctr,
    etcdctl,
    facts,
    helm,
    journal,
    keepalived,
    kernel,
    kubeadm,
    kubectl,
    links,
    netfilter,
    packages,
    scripts,
    standins,
    system,
    systemd,
    users,
)
from kubexm.sim.shell import Program, Shell, failed
from kubexm.sim.standins import NEEDED

PROGRAMS: Mapping[str, Program] = {
    **archives.PROGRAMS,
    **balancers.PROGRAMS,
    **clock.PROGRAMS,
    **coreutils.PROGRAMS,
    **crictl.PROGRAMS,
    **ctr.PROGRAMS,
    **etcdctl.PROGRAMS,
    **helm.PROGRAMS,
    **journal.PROGRAMS,
    **keepalived.PROGRAMS,
    **kernel.PROGRAMS,
    **kubeadm.PROGRAMS,
    **kubectl.PROGRAMS,
    **links.PROGRAMS,
    **netfilter.PROGRAMS,
    **packages.PROGRAMS,
    **system.PROGRAMS,
    **systemd.PROGRAMS,
    **users.PROGRAMS,
    "sh": facts.sh,
}

BEGINS: Mapping[str, Callable[[Shell, Sequence[str]], None]] = {"kubeadm": kubeadm.begins}
"""What programs that take long do at once; the rest comes later, and others may come in between."""


def run(shell: Shell, argv: Sequence[str]) -> Completed:
    """Carry out a command; `Refused` if nobody taught the simulation how."""
    if argv[0] == "timeout":
        argv = argv[2:]
    name = called = argv[0]
    if basename(name) in NEEDED:
        if (refusal := standins.refusal(shell, name)) is not None:
            return refusal
        # Whatever a file is called, it is the program that it stands for.
        found = standins.found(shell, name)
        called = name if found is None else found.program
    program = PROGRAMS.get(called) or PROGRAMS.get(basename(called)) or scripts.script(shell, name)
    if program is None:
        raise shell.unexpected(argv)
    try:
        return program(shell, argv[1:])
    except OSError as error:
        return failed(f"{name}: '{error.filename}': {error.strerror}")
