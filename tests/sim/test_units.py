"""A unit starts if its files, its program and what that needs are there, and says why if not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.sim.site import Site

from kubexm.common import layout
from kubexm.sim import Machine, ServiceSettings, units

UNIT = f"{layout.UNITS}/app.service"
Make = Callable[..., Site]


def unit(command: str, *lines: str, kind: str = "notify", before: str = "") -> str:
    service = "\n".join((f"Type={kind}", *lines, f"ExecStart={command}"))
    return f"[Unit]\n{before}\n[Service]\n{service}\n"


def test_a_program_that_is_not_there_fails_the_start_and_the_status_says_so(site: Site) -> None:
    site.put(UNIT, unit("/usr/local/bin/containerd"))

    done = site.ask("systemctl", "start", "app")

    assert done.exit == 1
    assert "Job for app.service failed" in done.error_text
    assert site.state("app") == "failed"
    status = site.ask("systemctl", "status", "--no-pager", "--lines=20", "--", "app")
    assert status.exit == 3
    assert "/usr/local/bin/containerd: No such file or directory" in status.text
    assert site.do("journalctl", "-u", "app").startswith("bash: /usr/local/bin/containerd")
    assert site.ask("systemctl", "is-system-running").text == "degraded"
    site.do("systemctl", "reset-failed", "app")
    assert site.state("app") == "inactive"
    assert site.do("systemctl", "is-system-running") == "running"


def test_a_simple_unit_fails_only_after_its_start_was_reported(site: Site) -> None:
    site.put(UNIT, unit("/usr/local/bin/kubelet", kind="simple"))
    assert site.ask("systemctl", "start", "app").ok
    assert site.state("app") == "failed"

    site.put(UNIT, unit("/usr/local/bin/kubelet", "Restart=always", kind="simple"))
    assert site.ask("systemctl", "start", "app").ok
    assert site.state("app") == "activating"


def test_a_program_for_another_machine_cannot_be_executed(site: Site) -> None:
    site.put(UNIT, unit("/usr/local/bin/containerd"))
    site.bring("containerd", "v2.2.7", arch="arm64")

    done = site.ask("systemctl", "start", "app")

    assert "Exec format error" in done.error_text


def test_an_environment_file_must_be_there_unless_a_dash_says_otherwise(site: Site) -> None:
    site.put(UNIT, unit("/bin/app", "EnvironmentFile=/etc/app.env"))
    assert "Failed to load environment files" in site.ask("systemctl", "start", "app").error_text

    site.put(UNIT, unit("/bin/app", "EnvironmentFile=-/etc/app.env"))
    assert site.ask("systemctl", "start", "app").ok


def test_commands_before_the_start_are_carried_out_and_may_fail_it(site: Site) -> None:
    site.put(
        UNIT, unit("/bin/app", "ExecStartPre=-/sbin/modprobe overlay", "ExecStartPre=/bin/false")
    )
    assert "`/bin/false` exited with 1" in site.ask("systemctl", "start", "app").error_text
    assert site.ask("test", "-d", "/sys/module/overlay").ok

    site.put(UNIT, unit("/bin/app", "ExecStartPre=-/bin/false"))
    assert site.ask("systemctl", "start", "app").ok


def test_what_is_dropped_in_counts_and_takes_away_what_was_there(site: Site) -> None:
    site.put(UNIT, unit("/usr/local/bin/kubelet"))
    drop_in = f"{UNIT}.d/10-ours.conf"
    site.put(drop_in, "[Service]\nExecStart=\nExecStart=/bin/app\n")
    assert site.ask("systemctl", "start", "app").ok

    site.put(drop_in, "[Service]\nExecStart=\nExecStart=/bin/app --more\n")

    shown = site.do("systemctl", "show", "--property=NeedDaemonReload", "app")
    assert shown == "NeedDaemonReload=yes"
    site.do("systemctl", "daemon-reload")
    shown = site.do("systemctl", "show", "--property=NeedDaemonReload", "app")
    assert shown == "NeedDaemonReload=no"


def test_a_unit_that_is_required_is_started_first_and_takes_the_other_with_it(site: Site) -> None:
    site.put(f"{layout.UNITS}/base.service", unit("/bin/base"))
    site.put(UNIT, unit("/bin/app", before="Requires=base.service\nAfter=base.service"))

    site.do("systemctl", "start", "app")
    assert site.state("base") == "active"
    site.do("systemctl", "restart", "base")
    assert site.world.host("n1").starts("app") == 2
    site.do("systemctl", "stop", "base")
    assert site.state("app") == "inactive"


def test_a_unit_does_not_start_without_what_it_requires(site: Site) -> None:
    site.put(UNIT, unit("/bin/app", before="Requires=base.service"))
    assert site.ask("systemctl", "start", "app").exit == 1

    site.put(UNIT, unit("/bin/app", before="Wants=base.service"))
    assert site.ask("systemctl", "start", "app").ok


def test_a_condition_that_does_not_hold_leaves_the_unit_as_it_is(site: Site) -> None:
    site.put(UNIT, unit("/bin/app", before="ConditionPathExists=/etc/app.conf"))

    site.do("systemctl", "start", "app")
    assert site.state("app") == "inactive"
    site.put("/etc/app.conf", "")
    site.do("systemctl", "start", "app")
    assert site.state("app") == "active"


def test_a_port_is_taken_once(made: Make) -> None:
    services = {name: ServiceSettings(ports=(80,)) for name in ("one", "other")}
    site = made(machine=Machine(services=services))
    site.do("systemctl", "start", "one")

    site.do("systemctl", "start", "other")

    assert site.state("other") == "failed"
    status = site.ask("systemctl", "status", "other").text
    assert "0.0.0.0:80: bind: address already in use (by one.service)" in status


def test_a_unit_that_runs_once_has_done_its_work_and_takes_it_back(site: Site) -> None:
    once = unit("/bin/touch /srv/done", "RemainAfterExit=yes", kind="oneshot")
    site.put(UNIT, f"{once}ExecStop=/bin/rm /srv/done\n")

    site.do("systemctl", "start", "app")
    assert (site.state("app"), site.ask("test", "-e", "/srv/done").ok) == ("active", True)
    site.do("systemctl", "stop", "app")
    assert (site.state("app"), site.ask("test", "-e", "/srv/done").ok) == ("inactive", False)

    site.put(UNIT, unit("/bin/false", kind="oneshot"))
    assert site.ask("systemctl", "start", "app").exit == 1


def test_a_timer_needs_what_it_starts(site: Site) -> None:
    site.put(f"{layout.UNITS}/app.timer", "[Timer]\nOnCalendar=daily\n")
    assert (
        "app.service to trigger not loaded"
        in site.ask("systemctl", "start", "app.timer").error_text
    )

    site.put(UNIT, unit("/bin/app", kind="oneshot"))
    site.do("systemctl", "enable", "--now", "app.timer")

    assert site.state("app.timer") == "active"
    assert site.state("app") == "inactive"


def test_units_that_are_enabled_start_with_the_host_by_their_files(site: Site) -> None:
    site.put(UNIT, unit("/usr/local/bin/containerd"))
    site.put(layout.CONTAINERD_CONFIG, "version = 2\n")
    site.bring("containerd", "v2.2.7")
    site.do("systemctl", "enable", "--now", "app")
    site.world.host("n1").reboot()
    assert site.state("app") == "active"

    site.do("rm", "/usr/local/bin/containerd")
    site.world.host("n1").reboot()

    assert site.state("app") == "failed"


def test_nothing_is_left_of_a_unit_that_was_taken_away(site: Site) -> None:
    site.put(UNIT, unit("/bin/app"))
    site.do("systemctl", "enable", "--now", "app")

    site.do("rm", UNIT)
    site.do("systemctl", "disable", "--now", "app")
    site.do("systemctl", "daemon-reload")

    assert site.world.snapshot() == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a  b", ["a", "b"]),
        ('"two words" c', ["two words", "c"]),
        ("'a b' \"\"", ["a b", ""]),
        (r'"say \"x\"\n"', ['say "x"\n']),
        (r"a\x20b".replace("x20", "s"), ["a b"]),
        ("--mount type=bind,src=/a,dst=/b", ["--mount", "type=bind,src=/a,dst=/b"]),
    ],
)
def test_words_are_taken_apart_as_systemd_does(text: str, words: list[str]) -> None:
    assert units.words(text) == words


def test_variables_are_filled_in_whole_or_as_words() -> None:
    variables = {"ARGS": "--a --b=1", "NAME": "x y"}

    found = units.execution("-/bin/app $ARGS ${NAME}.conf $$HOME $NOTHING 100%%", variables)

    assert found.argv == ("/bin/app", "--a", "--b=1", "x y.conf", "$HOME", "100%")
    assert found.lenient
