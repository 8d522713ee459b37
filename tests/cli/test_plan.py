"""`kubexm plan` and `kubexm graph`: what is known before any host is touched."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from tests.cli.answers import Kubexm

Write = Callable[..., Path]
HOSTS = "    - {name: n1, vars: {port: 80}}\n    - {name: n2, vars: {port: 81}}\n"


@pytest.mark.parametrize("command", ["plan", "graph"])
def test_variables_are_written_out_where_all_hosts_agree(
    kubexm: Kubexm, pipeline: Write, command: str
) -> None:
    file = pipeline(
        "- {name: a, file: {path: '${vars.base}/$${x}', content: x}}\n"
        "- {name: b, command: {argv: [serve, '${vars.port}', '${host.name}', '${facts.arch}']}}\n"
        "- {name: c, wait: {port: '${vars.shared}'}}\n",
        hosts=HOSTS,
        more="  vars: {base: /etc/app, shared: 8080}\n",
    )

    shown = kubexm(command, "-f", file).out
    overridden = kubexm(command, "-f", file, "--set", "base=/opt").out

    assert "file /etc/app/${x}  [n1 n2]" in shown
    assert "serve ${vars.port} ${host.name} ${facts.arch}  [n1 n2]" in shown
    assert "port 8080 of 127.0.0.1 is open  [n1 n2]" in shown
    assert "file /opt/${x}" in overridden


def test_what_runs_is_still_decided_on_the_hosts(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(
        "- {name: a, file: {path: '${vars.base}/a', content: x}}", more="  vars: {base: /etc}\n"
    )

    document = kubexm("plan", "-f", file, "-o", "json").out

    assert '"path": "${vars.base}/a"' in document


def test_no_secret_is_written_out(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(
        "- name: a\n"
        "  command: {argv: [login, '${vars.db.password}', '${vars.how}', 'a${vars.db}']}",
        more="  vars: {db: {password: hunter2hunter2}, how: 'by ${vars.db.password}'}\n",
    )

    shown = kubexm("plan", "-f", file, "--allow-literal-secrets").out

    assert "login ${vars.db.password} ${vars.how} a${vars.db}" in shown


@pytest.mark.parametrize("name", ["token", "db.password", "spec.pools.token"])
def test_a_secret_on_the_command_line_is_refused_whatever_it_is_a_part_of(
    kubexm: Kubexm, pipeline: Write, name: str
) -> None:
    answer = kubexm("plan", "-f", pipeline("- {name: a, noop: }"), "--set", f"{name}=hunter2")

    assert answer.code == 2
    assert f"--set {name}: a secret written out" in answer.err


def test_an_assertion_reads_as_what_it_asserts(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(
        "- {name: a, assert: {that: facts.cpus >= 2, message: enough processors}}\n"
        "- {name: b, when: host.name != 'n1',"
        " assert: {that: not defined(facts.kernel), message: new}}\n"
        "- {name: c, forEach: [1], assert: {that: facts.cpus > item, message: more}}\n"
    )

    shown = kubexm("plan", "-f", file).out

    assert "enough processors: facts.cpus >= 2  [n1 n2]\n" in shown
    assert "new: not defined(facts.kernel)  [n1 n2]  if host.name != 'n1' " in shown
    assert "more: facts.cpus > 1  [n1 n2]\n" in shown
    assert "1 condition (`if`): yes for 1 unit, no for 1 unit\n" in shown
    assert "facts of" not in shown


FAR_APART = "- {name: a, runOnRoles: [web], noop: }\n- {name: b, runOnRoles: [db], noop: }\n"


def test_a_plan_says_its_warnings_with_their_remedies_and_its_notices(
    kubexm: Kubexm, pipeline: Write
) -> None:
    file = pipeline(FAR_APART + "- {name: c, forEach: [], noop: }")

    shown = kubexm("plan", "-f", file).out
    data = json.loads(kubexm("plan", "-f", file, "-o", "json").out)

    assert f"warning: {file}:14:15: " in shown
    assert "\n  hint: say `after: [{name: a, scope: all}]`" in shown
    assert "note: " in shown
    assert "an empty list: the step is left out" in shown
    assert "shares no host with `a`" in data["warnings"][0]["message"]
    assert data["warnings"][0]["hint"]
    assert data["notices"][0]["where"] == f"{file}:15:34"


@pytest.mark.parametrize(
    "command", [("graph",), ("run", "--simulate"), ("run", "--simulate", "--check")]
)
def test_warnings_are_said_wherever_a_file_is_used(
    kubexm: Kubexm, pipeline: Write, command: tuple[str, ...]
) -> None:
    answer = kubexm(*command, "-f", pipeline(FAR_APART))

    assert answer.code == 0
    assert "warning: " in answer.err
    assert "shares no host with `a`" in answer.err
    assert "hint: say `after:" in answer.err


def test_the_outcome_of_a_run_has_the_warnings(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(FAR_APART)

    data = json.loads(kubexm("run", "-f", file, "--simulate", "-o", "json").out)

    assert data["warnings"][0]["where"] == f"{file}:14:15"


@pytest.mark.parametrize("command", [("graph",), ("plan",), ("run", "--simulate")])
def test_a_misspelt_role_is_refused(
    kubexm: Kubexm, pipeline: Write, command: tuple[str, ...]
) -> None:
    answer = kubexm(*command, "-f", pipeline("- {name: a, runOnRoles: [wbe], noop: }"))

    assert answer.code == 2
    assert "no host has the role `wbe`" in answer.err
    assert "did you mean `web`?" in answer.err


def test_a_graph_is_a_document_in_yaml_as_well(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline("- {name: a, file: {path: /a, content: x}}")

    answers = {style: kubexm("graph", "-f", file, "-o", style).out for style in ("yaml", "json")}

    assert yaml.safe_load(answers["yaml"]) == json.loads(answers["json"])


@pytest.mark.parametrize("command", [("plan",), ("graph",), ("run", "--simulate", "--check")])
@pytest.mark.parametrize("style", ["json", "yaml"])
def test_a_host_on_which_nothing_is_selected_is_told_beside_the_document(
    kubexm: Kubexm, pipeline: Write, command: tuple[str, ...], style: str
) -> None:
    file = pipeline("- {name: web, runOnRoles: [web], directory: {path: /srv/web}}")

    answer = kubexm(*command, "-f", file, "--hosts", "n1", "--hosts", "n2", "-o", style)

    assert answer.code == 0
    assert "warning: `--hosts n2` has no effect: nothing that is selected runs there" in answer.err
    assert yaml.safe_load(answer.out)


LOCKED = """\
  hooks:
    pre: [{name: lock, runOnRoles: [web], barrier: true, noop: }]
    always: [{name: unlock, runOnRoles: [web], barrier: true, noop: }]
"""


@pytest.mark.parametrize("command", [("plan",), ("run", "--simulate")])
def test_a_lock_that_goes_with_its_host_is_a_warning_that_names_both_halves_and_the_host(
    kubexm: Kubexm, pipeline: Write, command: tuple[str, ...]
) -> None:
    file = pipeline("- {name: a, noop: }", more=LOCKED)

    data = json.loads(kubexm(*command, "-f", file, "--hosts", "n2", "-o", "json").out)

    assert data["warnings"] == [
        {
            "message": "`--hosts` leaves out `n1`: what is left of `site` runs without"
            " `site/@pre-1/lock` and `site/@always-1/unlock`",
            "where": "",
            "hint": "add `--hosts n1` to keep them",
        }
    ]


@pytest.mark.parametrize(
    "command", [("plan",), ("graph",), ("run", "--simulate"), ("run", "--simulate", "--check")]
)
def test_a_lock_that_goes_with_its_host_is_told_and_one_that_stays_is_not(
    kubexm: Kubexm, pipeline: Write, command: tuple[str, ...]
) -> None:
    file = pipeline("- {name: a, noop: }", more=LOCKED)

    without = kubexm(*command, "-f", file, "--hosts", "n2")
    guarded = kubexm(*command, "-f", file, "--hosts", "n2", "--hosts", "n1")

    assert (without.code, guarded.code) == (0, 0)
    assert "warning: `--hosts` leaves out `n1`: " in without.out + without.err
    assert "hint: add `--hosts n1` to keep them" in without.out + without.err
    assert "warning: " not in guarded.out + guarded.err


def test_a_selection_that_leaves_nothing_is_refused(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline("- {name: web, runOnRoles: [web], directory: {path: /srv/web}}")

    answer = kubexm("plan", "-f", file, "--hosts", "n2")

    assert answer.code == 2
    assert "the selection leaves nothing to run" in answer.err
    assert "hint: select more" in answer.err


CHOICES = (
    "- {name: a, when: facts.os.id == 'debian', noop: }\n"
    "- {name: b, when: vars.fast and facts.cpus > 1, noop: }\n"
    "- {name: c, when: host.name == 'n1', command: {argv: [get, '${facts.arch}']}}\n"
)
DECLARED = (
    "    - {name: n1, connection: local, facts: {os: {id: debian}, arch: x86_64}}\n"
    "    - {name: n2, connection: local, facts: {os: {id: rocky}, arch: x86_64}}\n"
)
FAST, SLOW = "  vars: {fast: true}\n", "  vars: {fast: false}\n"


def test_conditions_are_decided_by_variables_hosts_and_declared_facts(
    kubexm: Kubexm, pipeline: Write, home: Path
) -> None:
    file = pipeline(CHOICES, hosts=DECLARED + "    - {name: n3}\n", more=FAST)

    shown = kubexm("plan", "-f", file).out

    assert "if facts.os.id == 'debian' (yes on n1, no on n2, ? on n3)\n" in shown
    assert "if vars.fast and facts.cpus > 1 (?)\n" in shown
    assert "if host.name == 'n1' (yes on n1, no on n2 n3)\n" in shown
    assert "get ${facts.arch}  [n1 n2 n3]" in shown
    assert (
        "3 conditions (`if`): yes for 2 units, no for 3 units, ? for 4 units,"
        " which the hosts decide\n"
        "note: the facts of 1 host are not known; a run stores them, or the file declares them\n"
    ) in shown
    assert not home.exists()


def test_a_variable_decides_a_condition_whatever_the_facts_are(
    kubexm: Kubexm, pipeline: Write
) -> None:
    shown = kubexm("plan", "-f", pipeline(CHOICES, more=SLOW)).out

    assert "if vars.fast and facts.cpus > 1 (no)\n" in shown


def test_a_document_has_the_decisions_beside_the_graph(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(CHOICES, hosts=DECLARED, more=FAST)

    texts = {style: kubexm("plan", "-f", file, "-o", style).out for style in ("json", "yaml")}
    data = json.loads(texts["json"])

    assert data["decisions"] == {
        "site/base/setup/a": {"n1": "yes", "n2": "no"},
        "site/base/setup/b": {"n1": "unknown", "n2": "unknown"},
        "site/base/setup/c": {"n1": "yes", "n2": "no"},
    }
    assert data["factsAsOf"] == {}
    assert data["graph"] == json.loads(kubexm("graph", "-f", file, "-o", "json").out)
    assert "${facts.arch}" in texts["json"]
    assert yaml.safe_load(texts["yaml"]) == data


def test_stored_facts_decide_what_is_not_declared_and_the_plan_says_how_old_they_are(
    kubexm: Kubexm, pipeline: Write, home: Path
) -> None:
    steps = (
        "- {name: a, when: facts.os.id == 'mine', noop: }\n"
        "- {name: b, when: facts.cpus > 0, command: {argv: [get, '${facts.arch}']}}\n"
    )
    declared = "    - {name: n1, connection: local, facts: {os: {id: mine}}}\n"
    file = pipeline(steps, hosts=declared + "    - {name: n2, connection: local}\n")
    assert kubexm("run", "-f", file, "--only", "site/base/setup/a").code == 0
    before = files(home)

    shown = kubexm("plan", "-f", file).out
    data = json.loads(kubexm("plan", "-f", file, "-o", "json").out)

    assert "if facts.os.id == 'mine' (yes on n1, no on n2)\n" in shown
    assert f"get {platform.machine()}  [n1 n2]  if facts.cpus > 0 (yes)\n" in shown
    assert re.search(r"\nnote: facts of 2 hosts as of \d{4}-\d\d-\d\d \d\d:\d\d UTC\n", shown)
    assert data["factsAsOf"].keys() == {"n1", "n2"}
    assert files(home) == before


def files(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_what_simulated_hosts_told_is_not_taken_for_what_real_ones_would(
    kubexm: Kubexm, pipeline: Write
) -> None:
    file = pipeline("- {name: a, when: facts.os.id == 'debian', noop: }")
    assert kubexm("run", "-f", file, "--simulate").code == 0

    shown = kubexm("plan", "-f", file).out

    assert "if facts.os.id == 'debian' (?)\n" in shown
    assert "note: the facts of 2 hosts are not known" in shown


@pytest.mark.parametrize("style", ["text", "json"])
def test_a_store_that_cant_be_read_is_a_warning(
    kubexm: Kubexm, pipeline: Write, home: Path, style: str
) -> None:
    file = pipeline(CHOICES, hosts=DECLARED, more=FAST)
    database = home / "state" / "kubexm.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"my diary\n" * 1000)
    before = files(home)

    answer = kubexm("plan", "-f", file, "-o", style)

    assert answer.code == 0
    told = answer.out if style == "text" else answer.err
    assert f"warning: facts of earlier runs can't be read: {database}: " in told
    assert "hint: restore it from a backup" in told
    assert "yes" in answer.out
    assert files(home) == before


def test_a_store_that_is_not_needed_is_not_looked_at(
    kubexm: Kubexm, pipeline: Write, home: Path
) -> None:
    home.mkdir()
    (home / "state").touch()

    answer = kubexm("plan", "-f", pipeline("- {name: a, when: host.name == 'n1', noop: }"))

    assert "warning" not in answer.out


def test_the_decisions_of_a_thousand_hosts_are_counted_and_not_listed(
    kubexm: Kubexm, pipeline: Write
) -> None:
    hosts = "".join(f"    - {{name: n{n}, vars: {{n: {n}}}}}\n" for n in range(1000))
    file = pipeline("- {name: a, when: vars.n >= 4 or facts.cpus > 1, noop: }", hosts=hosts)

    shown = kubexm("plan", "-f", file).out

    assert "(yes on 996 hosts, ? on 4 hosts)\n" in shown


def test_of_a_step_on_one_of_its_hosts_one_unit_is_counted(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline("- {name: a, runOnOneOf: [web, db], when: host.name == 'n1', noop: }")

    shown = kubexm("plan", "-f", file).out

    assert "1 condition (`if`): ? for 1 unit, which the hosts decide" in shown
