"""Connections: settings of ssh from the pipeline, groups and hosts, settled for each host."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest
from tests.spec.schema_reader import fits
from tests.spec.texts import with_steps

from kubexm.common.secrets import SecretRef
from kubexm.config.connection import Become, Jump, SshSettings
from kubexm.errors import InvalidPipeline
from kubexm.spec.inventory import InventoryHost
from kubexm.spec.model import as_data
from kubexm.spec.pipeline import parse_pipeline, pipeline_from
from kubexm.spec.planner import plan
from kubexm.spec.schema import json_schema

NOOP = "- {name: s, noop: }"
SITE = Path("/srv/site")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return tmp_path


def hosts(
    spec: str, *, directory: Path | None = SITE, allow_literal_secrets: bool = False
) -> dict[str, InventoryHost]:
    text = with_steps(NOOP, spec)
    pipeline = parse_pipeline(
        text, "p.yaml", directory=directory, allow_literal_secrets=allow_literal_secrets
    )
    return {host.name: host for host in plan(pipeline).hosts}


def ssh(spec: str, name: str = "a") -> SshSettings:
    settings = hosts(spec)[name].ssh
    assert settings is not None
    return settings


def problems(spec: str, *, directory: Path | None = SITE) -> list[tuple[str, str, str]]:
    with pytest.raises(InvalidPipeline) as caught:
        hosts(spec, directory=directory)
    return [
        (one.where.removeprefix("p.yaml:"), one.message.split(": ", 1)[-1], one.hint)
        for one in caught.value.problems
    ]


def messages(spec: str) -> list[str]:
    return [message for _, message, _ in problems(spec)]


def test_a_host_of_which_nothing_is_said_has_the_defaults_of_ssh(home: Path) -> None:
    assert ssh("hosts: [{name: a}]") == SshSettings(
        known_hosts=(f"{home}/.ssh/known_hosts", "/etc/ssh/ssh_known_hosts")
    )


def test_an_agent_and_a_client_configuration_are_used_where_they_are(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    (home / ".ssh").mkdir()
    (home / ".ssh" / "config").write_text("")

    found = hosts("hosts: [{name: a}, {name: b, ssh: {agent: false, config: false}}]")

    assert found["a"].ssh is not None
    assert (found["a"].ssh.agent, found["a"].ssh.config) == (True, f"{home}/.ssh/config")
    assert found["b"].ssh is not None
    assert (found["b"].ssh.agent, found["b"].ssh.config) == (False, None)


def test_the_nearer_setting_wins_key_by_key() -> None:
    spec = """
        hosts:
          - {name: a, roles: [x], ssh: {user: near}}
          - {name: b, roles: [x]}
          - {name: c}
        ssh: {user: far, port: 22, trust: first-use}
        groups: {g: {roles: [x], ssh: {user: middle, port: 2222}}}
        """

    found = [(ssh(spec, name).user, ssh(spec, name).port, ssh(spec, name).trust) for name in "abc"]

    assert found == [
        ("near", 2222, "first-use"),
        ("middle", 2222, "first-use"),
        ("far", 22, "first-use"),
    ]


def test_paths_become_absolute_from_home_and_from_beside_the_file(home: Path) -> None:
    found = ssh(
        """
        hosts: [{name: a}]
        ssh:
          keys: [~/.ssh/id, keys/deploy, /etc/key]
          knownHosts: [known]
          config: ssh.conf
        """
    )

    assert found.keys == (f"{home}/.ssh/id", "/srv/site/keys/deploy", "/etc/key")
    assert found.known_hosts == ("/srv/site/known",)
    assert found.config == "/srv/site/ssh.conf"


def test_secrets_stay_references() -> None:
    found = ssh(
        """
        hosts: [{name: a}]
        ssh:
          password: env://SSH_PASSWORD
          passphrase: file:///etc/phrase
          become: {way: su, password: "prompt://root of the cluster"}
        """
    )

    assert found.password == SecretRef("env://SSH_PASSWORD")
    assert found.passphrase == SecretRef("file:///etc/phrase")
    assert found.become == Become("su", SecretRef("prompt://root of the cluster"))


def test_a_host_is_reached_through_another_and_that_through_a_third() -> None:
    found = ssh(
        """
        hosts:
          - {name: a, ssh: {jump: b}}
          - {name: b, address: 10.0.0.2, ssh: {user: bob, jump: {address: edge, port: 2222}}}
        ssh: {user: all, become: {way: su}}
        """
    )

    assert found.jump is not None
    assert (found.jump.name, found.jump.address, found.jump.ssh.user) == ("b", "10.0.0.2", "bob")
    beyond = found.jump.ssh.jump
    assert beyond is not None
    assert (beyond.name, beyond.address, beyond.ssh.user) == ("", "edge", "all")
    assert (beyond.ssh.port, beyond.ssh.become) == (2222, Become())


def test_what_all_hosts_are_reached_through_is_itself_reached_directly() -> None:
    spec = "hosts: [{name: 'n[1:2]'}, {name: bastion}]\nssh: {jump: bastion}"

    assert [jump_of(spec, name) for name in ("n1", "n2", "bastion")] == ["bastion", "bastion", None]


def jump_of(spec: str, name: str) -> str | None:
    jump = ssh(spec, name).jump
    return jump.name if jump is not None else None


def test_a_host_may_be_reached_directly_where_others_are_not() -> None:
    spec = "hosts: [{name: a, ssh: {jump: false}}, {name: b}, {name: c}]\nssh: {jump: c}"

    assert [jump_of(spec, name) for name in "abc"] == [None, "c", None]


def test_this_machine_needs_no_connection() -> None:
    found = hosts("hosts: [{name: a, connection: local}]\nssh: {user: x}")

    assert (found["a"].ssh, found["control-node"].ssh) == (None, None)


def test_hosts_that_are_reached_alike_share_one_object() -> None:
    found = hosts("hosts: [{name: 'n[1:3]'}, {name: b}]\nssh: {jump: b}")

    assert found["n1"].ssh is found["n3"].ssh


def test_a_connection_is_stored_and_read_again_as_it_was() -> None:
    found = hosts(
        """
        hosts: [{name: a, ssh: {jump: b, keys: [k]}}, {name: b, ssh: {password: "prompt://b"}}]
        """
    )["a"]

    again = msgspec.json.decode(msgspec.json.encode(found), type=InventoryHost)

    assert again == found
    assert isinstance(again.ssh, SshSettings)
    assert isinstance(again.ssh.jump, Jump)


def test_a_connection_is_written_back_as_it_was_read() -> None:
    text = with_steps(
        NOOP,
        "hosts: [{name: a, ssh: {jump: b}}, {name: b, ssh: {jump: false}},"
        " {name: c, ssh: {jump: {address: e, jump: b}, become: {way: su}}}]",
    )
    spec = parse_pipeline(text).spec

    assert pipeline_from(as_data(spec)).spec == spec
    assert parse_pipeline(json.dumps(as_data(spec)), "x.json").spec == spec
    assert fits(as_data(spec), json_schema())


def test_what_references_name_of_a_host_holds_nothing_of_its_connection() -> None:
    found = hosts("hosts: [{name: a, ssh: {password: env://PW, user: x}}]")["a"]

    assert found.described().keys() == {"name", "address", "roles", "labels"}


def test_hosts_that_are_reached_through_each_other_are_refused_with_the_whole_way_round() -> None:
    found = problems(
        """
        hosts:
          - {name: a, ssh: {jump: b}}
          - {name: b, ssh: {jump: {address: edge, jump: c}}}
          - {name: c, ssh: {jump: a}}
          - {name: d, ssh: {jump: a}}
        """
    )

    assert found == [
        (
            "8:29",
            "hosts are reached through each other: a → b → edge → c → a",
            "reach one of them directly, with `ssh: {jump: false}`",
        )
    ]


def test_a_host_that_is_to_be_reached_through_itself_is_refused() -> None:
    assert messages("hosts: [{name: a, ssh: {jump: a}}]") == [
        "hosts are reached through each other: a → a"
    ]


def test_a_jump_through_nobody_or_through_this_machine_is_refused() -> None:
    assert messages(
        "hosts: [{name: a, ssh: {jump: bastoin}}, {name: bastion}, {name: c, ssh: {jump: here}},"
        " {name: here, connection: local}, {name: d, ssh: {jump: control-node}}]"
    ) == [
        "there is no host `bastoin` to jump through",
        "`here` is this machine, and no way to another",
        "`control-node` is this machine, and no way to another",
    ]


def test_a_way_has_an_end() -> None:
    listed = ", ".join(f"{{name: n{k}, ssh: {{jump: n{k + 1}}}}}" for k in range(500))

    (message,) = messages(f"hosts: [{listed}, {{name: n500}}]")

    assert message.startswith("a way of more than 10 jumps: n0 → n1 → ")


def test_settings_of_groups_that_differ_are_refused_without_their_values() -> None:
    found = problems(
        """
        hosts:
          - {name: a, roles: [x, y]}
          - {name: b, roles: [x, y], connection: local}
        groups:
          one: {roles: [x], ssh: {user: root, password: "env://ONE"}}
          two: {roles: [y], ssh: {user: root, password: "env://TWO"}}
        """
    )

    assert found == [
        (
            "10:51",
            "the groups `one` and `two` give different values to `ssh.password` on `a`",
            "give it in one of them, or at the host, which wins",
        )
    ]


def test_all_that_is_wrong_with_connections_comes_at_once() -> None:
    found = problems(
        """
        hosts:
          - {name: a, connection: local, ssh: {user: x}}
          - {name: b, ssh: {known_hosts: [x], port: 70000}}
          - {name: c, ssh: {user: "-x y", keys: ["env://KEY"], trust: always}}
          - {name: d, ssh: {keys: ["keys/${host.name}"], password: 12345}}
          - {name: e, ssh: {jump: {user: x}}}
          - {name: f, ssh: {jump: {host: e, user: x}}}
          - {name: g, ssh: {jump: {address: "10.0.0.[1:2]", become: {way: su}}}}
          - {name: h, ssh: {become: {way: doas}, config: true, agent: "no"}}
        """
    )

    assert [message for _, message, _ in found] == [
        "`ssh` of a host that is reached without: `connection: local`",
        "unknown key `known_hosts`",
        "found the number 70000, want at most 65535",
        "found the text `-x y`, want the name of a user",
        "found the text `env://KEY`, want a path",
        "found the text `always`, want `known` or `first-use`",
        "`${host.name}` in a setting of a connection",
        "found no text, want a reference to a secret",
        "neither `host` nor `address`",
        "`host` beside other keys",
        "found `10.0.0.[1:2]`, want one address",
        "unknown key `become`",
        "found the text `doas`, want `sudo` or `su`",
        "found `true`, want a path",
        "found the text `no`, want `true` or `false`",
    ]
    assert all(hint for _, _, hint in found)
    assert "12345" not in str(found)


def test_a_wrong_setting_does_not_make_another_one_wrong() -> None:
    assert messages(
        """
        hosts:
          - {name: a, ssh: {jump: false, port: 0}}
          - {name: b, ssh: {jump: a}}
        ssh: {jump: b}
        """
    ) == ["found the number 0, want at least 1"]


def test_a_path_that_leads_nowhere_is_refused_once() -> None:
    found = problems(
        """
        hosts: [{name: "a[1:9]"}]
        ssh: {keys: [~nobody-at-all/key], jump: {address: e, config: ssh.conf}}
        """,
        directory=None,
    )

    assert [message for _, message, _ in found] == [
        "`~nobody-at-all` is nobody's home",
        "a relative path, and the file has no place that it could start from",
    ]


LITERAL = """
hosts: [{name: a, ssh: {password: hunter2, jump: {address: e, passphrase: hunter2}}}]
groups: {g: {roles: [all], ssh: {become: {password: hunter2}}}}
ssh: {keys: ["-----BEGIN OPENSSH PRIVATE KEY-----"]}
"""


def test_a_secret_written_out_is_refused_with_the_reference_to_write() -> None:
    found = problems(LITERAL)

    assert [(message, hint.split(",")[0]) for _, message, hint in found] == [
        ("a secret written out", "write `env://SSH_PASSWORD`"),
        ("a secret written out", "write `env://JUMP_PASSPHRASE`"),
        ("a secret written out", "write `env://BECOME_PASSWORD`"),
        ("found a key written out, want a path", "write the path of the file"),
    ]
    assert "prompt://WHAT" in found[0][2]
    assert "hunter2" not in str(found)


def test_a_secret_written_out_passes_where_that_is_accepted() -> None:
    found = hosts(LITERAL.rpartition("ssh:")[0], allow_literal_secrets=True)["a"].ssh

    assert found is not None
    assert found.password == SecretRef("hunter2")


def test_many_hosts_are_settled_in_one_go() -> None:
    found = hosts(
        "hosts: [{name: 'a[1:100]b[1:50]', roles: [x]}, {name: j}]\n"
        "ssh: {jump: j}\ngroups: {g: {roles: [x], ssh: {user: u}}}"
    )

    assert len({id(host.ssh) for host in found.values()}) == 3
    assert os.environ["HOME"] in str(found["a1b1"].ssh)
