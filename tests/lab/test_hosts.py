"""The hosts of the lab are real: they boot, let the right users in, and reach nothing else."""

import re
import socket
from pathlib import Path

import pytest

from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(60)]

HOSTS = ["node1", "trixie1", "bastion", "hidden"]


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_is_a_whole_debian_with_systemd(lab: Lab, name: str) -> None:
    done = lab.ssh(f"root@{name}", "systemctl is-system-running --wait; ps -o comm= 1; hostname")

    assert done.stdout.split() == ["running", "systemd", name], done.stderr


def test_debian_12_and_13_stand_side_by_side(lab: Lab) -> None:
    versions = [
        lab.ssh(f"root@{name}", ". /etc/os-release; echo $VERSION_ID").stdout.strip()
        for name in ("node1", "trixie1")
    ]

    assert versions == ["12", "13"]


@pytest.mark.parametrize("user", ["root", "admin", "ops"])
@pytest.mark.parametrize("name", ["node1", "trixie1", "hidden"])
def test_the_plain_key_lets_every_user_in(lab: Lab, user: str, name: str) -> None:
    assert lab.ssh(f"{user}@{name}", "id -un").stdout == f"{user}\n"


def test_admin_may_do_anything_without_a_password(lab: Lab) -> None:
    assert lab.ssh("admin@node1", "sudo -n id -un").stdout == "root\n"


def test_ops_needs_the_password_for_sudo(lab: Lab) -> None:
    refused = lab.ssh("ops@node1", "sudo -n id -un")
    allowed = lab.ssh("ops@node1", "sudo -S -p '' id -un", stdin=f"{lab.password('ops')}\n")

    assert "a password is required" in refused.stderr
    assert allowed.stdout == "root\n"


@pytest.mark.parametrize("name", ["node1", "trixie1"])
def test_the_signed_key_needs_its_certificate(lab: Lab, name: str, tmp_path: Path) -> None:
    # ssh takes a certificate that lies beside its key without being told.
    alone = copy(lab.key("signed"), tmp_path)

    assert who(lab, name, lab.key("signed")) == "root\n"
    assert who(lab, name, alone) == ""


def test_the_locked_key_needs_its_passphrase(lab: Lab, tmp_path: Path) -> None:
    opened = copy(lab.key("locked"), tmp_path)
    lab.run("ssh-keygen", "-q", "-p", "-P", lab.passphrase, "-N", "", "-f", opened)

    assert who(lab, "node1", lab.key("locked")) == ""
    assert who(lab, "node1", opened) == "root\n"


def copy(key: Path, folder: Path) -> Path:
    copied = folder / key.name
    copied.write_text(key.read_text())
    copied.chmod(0o600)
    return copied


def who(lab: Lab, name: str, key: Path) -> str:
    """Whom a host takes us for with this key and no other; nobody if it refuses."""
    known = f"UserKnownHostsFile={lab.site.known_hosts}"
    settings = (f"IdentityFile={key}", "IdentitiesOnly=yes", "BatchMode=yes", known)
    flags = [word for setting in settings for word in ("-o", setting)]
    return lab.run("ssh", "-F", "/dev/null", *flags, f"root@{lab.address(name)}", "id -un").stdout


def test_gate_takes_passwords_and_no_key(lab: Lab, tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    answer.write_text(f"#!/bin/sh\ncat {lab.site.passwords}/admin\n")
    answer.chmod(0o700)
    asking = ("env", "SSH_ASKPASS_REQUIRE=force", f"SSH_ASKPASS={answer}")

    by_key = lab.ssh("admin@gate", "id -un")
    typed = lab.run(*asking, "ssh", "-F", lab.site.ssh_config, "admin@gate", "id -un")

    assert "Permission denied (password)" in by_key.stderr
    assert typed.stdout == "admin\n"


def test_a_node_takes_no_password(lab: Lab) -> None:
    done = lab.ssh("ops@node1", "id", options=("PubkeyAuthentication=no",))

    assert "Permission denied (publickey)" in done.stderr


def test_the_bastion_is_the_only_way_to_the_hidden_host(lab: Lab) -> None:
    straight = lab.ssh("root@hidden", "id", options=("ProxyJump=none",))
    through = lab.ssh("root@hidden", "echo $SSH_CONNECTION")
    from_a_node = lab.ssh("root@node1", f"timeout 3 ssh-keyscan {lab.address('hidden')}")
    addresses = lab.run("ip", "-brief", "address").stdout.splitlines()

    assert straight.returncode == 255
    assert through.stdout.split()[0] == lab.host("bastion").inner_address
    assert from_a_node.stdout == ""
    assert [line.split()[0] for line in addresses if len(line.split()) > 2] == ["lo", "lan"]


def test_hosts_know_each_other_by_name(lab: Lab) -> None:
    done = lab.ssh("root@node1", "getent hosts node2 trixie1 gate")

    addresses = [line.split()[0] for line in done.stdout.splitlines()]
    assert addresses == [lab.address(name) for name in ("node2", "trixie1", "gate")]


def test_the_lab_has_no_link_and_no_route_to_anywhere_else(lab: Lab) -> None:
    links = lab.run("ip", "-brief", "link").stdout
    routes = lab.run("ip", "route").stdout
    names = {line.split()[0].partition("@")[0] for line in links.splitlines()}

    hosts = {host.name for host in lab.site.hosts()}
    assert names == {"lo", "lan", "cellar", "bastion-in"} | hosts
    assert re.fullmatch(r"10\.99\.0\.0/24 dev lan [^\n]*\n", routes)


def test_a_host_can_not_reach_the_machine_nor_set_its_clock(lab: Lab) -> None:
    machine = "198.51.100.1"

    reached = lab.ssh("root@node1", f"curl -sS -m 3 http://{machine}/")
    clock = lab.ssh("root@node1", "date -s 2001-01-01")

    assert reached.returncode != 0
    assert "Operation not permitted" in clock.stderr


def test_no_password_is_for_others_to_read(lab: Lab) -> None:
    modes = {path.name: path.stat().st_mode & 0o777 for path in lab.site.passwords.iterdir()}

    assert modes == {"admin": 0o600, "ops": 0o600, "passphrase": 0o600}
    assert lab.site.passwords.stat().st_mode & 0o777 == 0o700


def test_what_containers_need_is_there(lab: Lab) -> None:
    done = lab.ssh(
        "root@node1",
        "mkdir /sys/fs/cgroup/memory/probe && rmdir /sys/fs/cgroup/memory/probe"
        " && stat -f -c %T /var/lib/containerd && test -c /dev/kmsg && findmnt -no PROPAGATION /",
    )

    assert done.stdout.split() == ["ext2/ext3", "shared"], done.stderr


def test_a_test_can_stand_in_the_network_of_the_lab(lab_network: Lab) -> None:
    with socket.create_connection((lab_network.address("node1"), 22), 5) as line:
        assert line.recv(8) == b"SSH-2.0-"
