"""`kubexm plan` and `kubexm graph`: what is known before any host is touched."""

from __future__ import annotations

import json
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


def test_an_assertion_reads_as_what_it_asserts(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline(
        "- {name: a, assert: {that: facts.cpus >= 2, message: enough processors}}\n"
        "- {name: b, when: host.name != 'n1',"
        " assert: {that: not defined(facts.kernel), message: new}}\n"
        "- {name: c, forEach: [1], assert: {that: facts.cpus > item, message: more}}\n"
    )

    shown = kubexm("plan", "-f", file).out

    assert "enough processors: facts.cpus >= 2  [n1 n2]\n" in shown
    assert "new: not defined(facts.kernel)  [n1 n2]  if host.name != 'n1'\n" in shown
    assert "more: facts.cpus > 1  [n1 n2]\n" in shown
    assert "1 condition (`if`) will be decided on the hosts" in shown


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


def test_a_selection_that_leaves_nothing_is_refused(kubexm: Kubexm, pipeline: Write) -> None:
    file = pipeline("- {name: web, runOnRoles: [web], directory: {path: /srv/web}}")

    answer = kubexm("plan", "-f", file, "--hosts", "n2")

    assert answer.code == 2
    assert "the selection leaves nothing to run" in answer.err
    assert "hint: select more" in answer.err
