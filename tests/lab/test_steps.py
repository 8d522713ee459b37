"""Every generic step on real hosts: needed, satisfied, and undone to what was there before.

Whether a host is as it was is asked without kubexm: by its files as they lie on the disk, and by
its own tools. What can't be tried here, since the hosts share the kernel of the machine: swap that
is in use (`swapoff` would be the machine's), modules that are loaded or taken out, and settings
that are not of the network.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest
from tests.lab.test_runs import Control
from tests.step.places import MemoryLedger, Place

from kubexm.connector.ssh.connector import SshConnector
from kubexm.connector.ssh.dial import Dialer
from kubexm.connector.ssh.target import Credentials, HostKeys, Target
from kubexm.errors import CommandFailed, Refused, StepFailed
from kubexm.runner import packages
from kubexm.runner.host import Host
from kubexm.step.archives import Unpacked
from kubexm.step.checks import Assert
from kubexm.step.commands import Command
from kubexm.step.contract import NotYet, Outcome, Step
from kubexm.step.edits import LineInFile, ManagedBlock
from kubexm.step.files import Absent, Directory, FilePresent, Rendered
from kubexm.step.identity import Hostname, UserPresent
from kubexm.step.kernel import KernelModule, KernelSettings, NoSwap
from kubexm.step.packages import Package
from kubexm.step.secrets import RenderedSecret, SecretFile
from kubexm.step.services import Service
from kubexm.step.values import FetchValue, Minted
from kubexm.step.waits import Pause, WaitFor
from lab.testing import Lab

pytestmark = [pytest.mark.lab, pytest.mark.timeout(60)]
LOGINS = {"node1": "root", "trixie1": "admin"}
ROOT, STATE = "/srv/steps", "/var/lib/kubexm-steps"
FILE, TREE = f"{ROOT}/file", f"{ROOT}/tree"
WATCHED = ("etc", "home", "opt", "srv")
# What useradd and its like leave beside the files that they change, and sudo in a home.
BACKUPS = {"passwd-", "group-", "shadow-", "gshadow-", "subuid-", "subgid-", ".pwd.lock"}
TRACES = {*BACKUPS, ".sudo_as_admin_successful"}


class LabPlace(Place):
    """A real host, a directory on it to play in, and its own tools to see what it is like."""

    def __init__(self, lab: Lab, name: str) -> None:
        user = LOGINS[name]
        keys = Credentials(keys=(lab.key(),))
        known = HostKeys((lab.site.known_hosts,))
        target = Target(lab.address(name), user=user, credentials=keys, host_keys=known)
        self.lab, self.name = lab, name
        self.look = self.clean = ""
        self._dialer = Dialer()
        self._connector = SshConnector(target, self._dialer, sudo=user != "root", state_dir=STATE)
        host = Host(name, self._connector, sudo=user != "root", state_dir=STATE)
        super().__init__(host, ROOT, asyncio.Runner())
        self.wait(self._connector.open())
        self.beyond(ROOT).mkdir()

    def sh(self, script: str) -> str:
        """What a script says that root runs on the host, past kubexm."""
        done = self.lab.ssh(f"root@{self.name}", script)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def prepare(self, script: str, clean: str = "") -> None:
        """Run a script now, and another one at the end of the test, however that ends."""
        self.clean = f"{clean}; {self.clean}" if clean else self.clean
        if script:
            self.sh(f"set -e; {script}")

    def state(self) -> Mapping[str, object]:
        root = self.lab.root(self.name)
        found: dict[str, object] = {
            str(path.relative_to(root)): described(path)
            for top in WATCHED
            for path in (root / top).rglob("*")
            if path.name not in TRACES
        }
        return {**found, "look": self.sh(self.look) if self.look else ""}

    def beyond(self, path: str) -> Path:
        """A path of the host, as this machine sees it."""
        return self.lab.root(self.name) / path.lstrip("/")

    def times(self, path: str) -> dict[str, int]:
        top = self.beyond(path)
        return {str(each): each.lstat().st_mtime_ns for each in (top, *top.rglob("*"))}

    def close(self) -> None:
        try:
            self.wait(self._connector.close())
            self._dialer.close()
            super().close()
        finally:
            if self.clean:
                self.sh(f"{self.clean}:")
            for path in map(self.beyond, (ROOT, STATE)):
                shutil.rmtree(path, ignore_errors=True)


def described(path: Path) -> tuple[object, ...]:
    found = path.lstat()
    content: tuple[object, ...] = ()
    if path.is_symlink():
        content = (path.readlink(),)
    elif path.is_file():
        content = (path.read_bytes(), found.st_nlink)
    return oct(found.st_mode), found.st_uid, found.st_gid, *content


@pytest.fixture(params=LOGINS)
def place(request: pytest.FixtureRequest, lab_network: Lab) -> Iterator[LabPlace]:
    made = LabPlace(lab_network, request.param)
    made.secrets = {"env://TOKEN": "s3cret"}
    yield made
    made.close()


@pytest.fixture
def debian12(lab_network: Lab) -> Iterator[LabPlace]:
    made = LabPlace(lab_network, "node1")
    yield made
    made.close()


@dataclass(frozen=True)
class Case:
    """A step, what was there before it, and what its precheck says."""

    step: Step
    sign: str = "~"
    before: str = ""
    look: str = ""
    """Asks the host for what is not in its files."""
    clean: str = ""


def proves(place: LabPlace, step: Step, sign: str) -> None:
    """Needed and changed, satisfied and not changed again, undone once and for all."""
    before = place.state()

    verdict = place.verdict(step)

    assert (verdict.satisfied, verdict.sign) == (False, sign)
    assert place.state() == before, "a precheck changes nothing"
    place.run(step)
    assert place.verdict(step).satisfied
    done = place.state()
    assert done != before
    place.run(step)
    assert place.state() == done
    for _ in range(2):
        place.undo(step)
        assert place.state() == before


def theirs(mode: str = "0644", text: str = r"theirs\n") -> str:
    """A script that has a file of somebody else at the place."""
    return f"printf '{text}' >{FILE}; chown ops:adm {FILE}; chmod {mode} {FILE}"


LARGE = f"seq 50000 >{FILE}; chown ops:adm {FILE}"
LINK = f"ln -s /nowhere {FILE}; chown -h ops:adm {FILE}"
WHOLE_TREE = (
    f"mkdir -p {TREE}/deep/empty; echo a >{TREE}/a; ln {TREE}/a {TREE}/deep/hard;"
    f"ln -s ../a {TREE}/deep/soft; mkfifo {TREE}/deep/pipe; chown -hR ops:adm {TREE};"
    f"chmod 4711 {TREE}/a; chmod 2750 {TREE}/deep; touch -h -d 2001-02-03 {TREE}/a {TREE}/deep"
)
TAR = f"{ROOT}/app.tar.gz"
PACKED = (
    f"mkdir -p {ROOT}/app-1/bin; echo run >{ROOT}/app-1/bin/app; chmod 0755 {ROOT}/app-1/bin/app;"
    f"ln -s bin/app {ROOT}/app-1/app; chown -R ops {ROOT}/app-1; tar -C {ROOT} -czf {TAR} app-1"
)
CONFIG = r"one\nport = 1\ntwo\n#port = 2\nthree"
BLOCK = r"one\n# BEGIN kubexm: managed\nolder\n# END kubexm: managed\ntwo\n"
OWN_BLOCK, OWN_LINE = ManagedBlock(FILE, "ours\n"), LineInFile(FILE, "port = 3", match="^#?port =")

FILES: dict[str, Case] = {
    "a file where nothing was": Case(
        FilePresent(FILE, content="ours\n", mode="0640", owner="ops", group="adm"), "+"
    ),
    "a file in place of another": Case(
        FilePresent(FILE, content="ours\n", mode="0600", owner="admin"), before=theirs()
    ),
    "a file in place of a private one": Case(
        FilePresent(FILE, content="ours\n", mode="0644", group="root"), before=theirs("0640")
    ),
    "a large file in place of another": Case(
        FilePresent(FILE, content="ours\n" * 50_000), before=LARGE
    ),
    "a small file in place of a large one": Case(FilePresent(FILE, content="x"), before=LARGE),
    "a file that is no text": Case(FilePresent(FILE, content_base64="AP8KAA=="), "+"),
    "a file with nothing in it": Case(FilePresent(FILE), "+"),
    "a file in place of a link": Case(FilePresent(FILE, content="ours\n"), before=LINK),
    "a file of nobody that is known": Case(FilePresent(FILE, owner="4711", group="4712"), "+"),
    "a file with a strange name": Case(
        FilePresent(f'{ROOT}/it\'s "a"\n$HOME \\ ü*', content="x"), "+"
    ),
    "mode and owner of a program": Case(
        FilePresent(FILE, mode="0755", owner="admin"), before=theirs("4711")
    ),
    "mode of a program": Case(FilePresent(FILE, mode="6755"), before=theirs("0755")),
    "a template where nothing was": Case(
        Rendered(FILE, text="a={{ a }}\n", data={"a": 1}, mode="0600"), "+"
    ),
    "a template of the program in place of another": Case(
        Rendered(FILE, template="systemd/service", data={"command": ["/bin/true"], "user": "ops"}),
        before=theirs(),
    ),
    "a secret where nothing was": Case(SecretFile(FILE, "env://TOKEN", owner="ops"), "+"),
    "a secret in place of another": Case(SecretFile(FILE, "env://TOKEN"), before=theirs()),
    "a template with a secret where nothing was": Case(
        RenderedSecret(FILE, secrets={"a": "env://TOKEN"}, text="a={{ a }}\n"), "+"
    ),
    "a template with a secret in place of another": Case(
        RenderedSecret(FILE, secrets={"a": "env://TOKEN"}, text="a={{ a }}\n"), before=theirs()
    ),
    "nothing in place of a file": Case(Absent(FILE), "-", theirs("4755")),
    "nothing in place of a private file": Case(Absent(FILE), "-", theirs("0600")),
    "nothing in place of a link": Case(Absent(FILE), "-", LINK),
    "nothing in place of a tree": Case(Absent(TREE, recursive=True), "-", WHOLE_TREE),
    "a directory where nothing was": Case(
        Directory(f"{TREE}/a/b", mode="0750", owner="ops", group="adm"), "+"
    ),
    "a directory with another mode and owner": Case(
        Directory(TREE, mode="0700", owner="admin"), before=WHOLE_TREE
    ),
    "a directory with a set-group-id bit": Case(
        Directory(TREE, mode="2775"), before=f"mkdir -m 0755 {TREE}"
    ),
    "a directory without one": Case(Directory(TREE, mode="0755"), before=f"mkdir -m 2775 {TREE}"),
    "a directory where such bits are handed on": Case(
        Directory(f"{TREE}/a", mode="0755"), "+", f"mkdir -m 2775 {TREE}"
    ),
    "a block where nothing was": Case(OWN_BLOCK, "+"),
    "a block in a file of others": Case(OWN_BLOCK, before=theirs()),
    "a block behind a line without its end": Case(OWN_BLOCK, before=theirs(text="one")),
    "a block in a private file": Case(OWN_BLOCK, before=theirs("0600", BLOCK)),
    "a block in place of an older one": Case(OWN_BLOCK, before=theirs(text=BLOCK)),
    "a line where nothing was": Case(OWN_LINE, "+"),
    "a line in place of others": Case(OWN_LINE, before=theirs(text=CONFIG)),
    "a line in a private file": Case(OWN_LINE, before=theirs("0600", CONFIG)),
    "a line among bytes": Case(OWN_LINE, before=theirs(text=r"\377\000\r\n")),
    "no such lines": Case(
        LineInFile(FILE, "three", match="^#?port", absent=True), before=theirs(text=CONFIG)
    ),
    "an archive where nothing was": Case(Unpacked(TAR, TREE, strip=1), "+", PACKED),
    "an archive in place of a tree": Case(Unpacked(TAR, TREE), before=f"{PACKED}; {WHOLE_TREE}"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_are_needed_then_satisfied_then_undone(place: LabPlace, name: str) -> None:
    place.prepare(FILES[name].before)

    proves(place, FILES[name].step, FILES[name].sign)


NAMES = "hostname; hostnamectl --static"
NAMED = "mv /etc/hostname.was /etc/hostname; hostname -F /etc/hostname"
WHO = "id games; id shop 2>&1 || :; ls -ldn /home/* /srv/shops* 2>&1 || :"
NO_SHOP = "userdel -r shop 2>/dev/null || :; rm -rf /srv/shops"
GAMES = "usermod -u 5 -d /usr/games -s /usr/sbin/nologin -G '' games"
FORWARDING = (
    "net.ipv4.ip_forward net.ipv4.conf.all.forwarding net.ipv4.conf.all.accept_redirects "
    "net.ipv4.ip_local_port_range"
)
SETTINGS = f"sysctl -n {FORWARDING}"
SYSCTL_FILE, MODULE_FILE = "/etc/sysctl.d/90-steps.conf", "/etc/modules-load.d/printk.conf"
SAVED = f"sysctl {FORWARDING} >{ROOT}/settings"
UNSET = f"rm -f {SYSCTL_FILE}; sysctl -q -p {ROOT}/settings"

SYSTEM: dict[str, Case] = {
    "a name": Case(
        Hostname("web1.example.org"), "~", "cp -a /etc/hostname /etc/hostname.was", NAMES, NAMED
    ),
    "a name where none is kept": Case(
        Hostname("web1"), "~", "mv /etc/hostname /etc/hostname.was", NAMES, NAMED
    ),
    "a new user": Case(
        UserPresent("shop", uid=4711, shell="/bin/sh", groups=("adm", "games")),
        "+",
        look=WHO,
        clean=NO_SHOP,
    ),
    "a new user of the system": Case(
        UserPresent("shop", system=True), "+", look=WHO, clean=NO_SHOP
    ),
    "a new user with a home deep down": Case(
        UserPresent("shop", home="/srv/shops/first/home"), "+", look=WHO, clean=NO_SHOP
    ),
    "a new user with a home that is there": Case(
        UserPresent("shop", home="/srv/shops"),
        "+",
        "mkdir /srv/shops; echo kept >/srv/shops/kept",
        WHO,
        NO_SHOP,
    ),
    "a user that changes": Case(
        UserPresent("games", uid=4711, home="/srv", shell="/bin/sh", groups=("adm",)),
        before="usermod -G staff,mail games",
        look=WHO,
        clean=GAMES,
    ),
    "settings of the network": Case(
        KernelSettings("90-steps", {"net.ipv4.ip_local_port_range": "20000  30000"}),
        before=SAVED,
        look=SETTINGS,
        clean=UNSET,
    ),
    "settings of which one changes the other": Case(
        KernelSettings(
            "90-steps",
            {
                "net.ipv4.ip_forward": 1,
                "net.ipv4.conf.all.forwarding": 1,
                "net/ipv4/conf/all/accept_redirects": 1,
            },
        ),
        before=f"{SAVED}; echo '# theirs' >{SYSCTL_FILE}; chmod 0600 {SYSCTL_FILE};"
        "sysctl -q -w net.ipv4.ip_forward=0 net.ipv4.conf.all.accept_redirects=0",
        look=SETTINGS,
        clean=UNSET,
    ),
    "a module at boot": Case(KernelModule("printk"), clean=f"rm -f {MODULE_FILE}"),
    "a module at boot in place of another": Case(
        KernelModule("printk"),
        before=f"echo other >{MODULE_FILE}; chown ops {MODULE_FILE}",
        look="test -d /sys/module/printk",
        clean=f"rm -f {MODULE_FILE}",
    ),
}


@pytest.mark.parametrize("name", SYSTEM)
def test_the_system_is_needed_then_satisfied_then_undone(place: LabPlace, name: str) -> None:
    case = SYSTEM[name]
    place.prepare(case.before, case.clean)
    place.look = case.look

    proves(place, case.step, case.sign)


def test_swap_is_not_turned_on_at_boot_and_that_is_taken_back(place: LabPlace) -> None:
    if len(Path("/proc/swaps").read_text().splitlines()) > 1:
        pytest.skip("the machine uses swap, and the hosts would turn off the machine's")
    line = "/dev/steps  none\tswap sw 0 0"
    saved = f"cp -a /etc/fstab {ROOT}/fstab; printf '{line}\\n# end' >>/etc/fstab"
    place.prepare(saved, f"cp -a {ROOT}/fstab /etc/fstab")

    proves(place, NoSwap(), "~")


def test_a_setting_and_a_module_that_the_kernel_has_not_are_named(debian12: LabPlace) -> None:
    with pytest.raises(StepFailed, match=r"no setting `net\.no\.such`"):
        debian12.run(KernelSettings("90-steps", {"net.no.such": 1}))
    with pytest.raises(StepFailed, match="no module `no_such`"):
        debian12.run(KernelModule("no_such"))


def test_what_was_copied_has_the_times_that_it_had(place: LabPlace) -> None:
    """Promised of nothing but copies: of a small file only content, mode and owner are kept."""
    place.prepare(f"{PACKED}; {WHOLE_TREE}; {LARGE}; touch -d 2001-02-03 {FILE}")
    before = place.times(TREE), place.times(FILE)
    for step in (Absent(TREE, recursive=True), Unpacked(TAR, TREE), Absent(FILE)):
        place.run(step)
        place.undo(step)
        place.ledger = MemoryLedger()

        assert (place.times(TREE), place.times(FILE)) == before


def test_an_archive_that_is_another_changes_nothing(debian12: LabPlace) -> None:
    debian12.prepare(f"{PACKED}; {WHOLE_TREE}")
    before = debian12.state()
    digest = sha256(b"another").hexdigest()

    with pytest.raises(StepFailed, match=f"want {digest}"):
        debian12.run(Unpacked(TAR, TREE, sha256=digest))
    with pytest.raises(StepFailed, match="exited with 2"):
        debian12.run(Unpacked("/etc/hostname", TREE))

    assert debian12.state() == before


def test_what_others_have_put_into_a_directory_stays(debian12: LabPlace) -> None:
    step = Directory(f"{TREE}/a")
    debian12.run(step)
    debian12.sh(f"touch {TREE}/theirs")

    left = debian12.wait(step.rollback(debian12.context()))

    assert left == f"`{TREE}` is not empty"
    assert debian12.sh(f"ls {TREE}") == "theirs"


@pytest.mark.parametrize("step", [FilePresent(TREE), Absent(TREE), Directory(FILE), OWN_BLOCK])
def test_what_is_of_another_kind_is_not_touched(debian12: LabPlace, step: Step) -> None:
    debian12.prepare(f"{WHOLE_TREE}; ln -s tree/a {FILE}")
    before = debian12.state()

    with pytest.raises(StepFailed):
        debian12.verdict(step)

    assert debian12.state() == before


class TestCommands:
    def test_a_guard_says_whether_it_runs_and_an_undo_takes_it_back(self, place: LabPlace) -> None:
        before = place.state()
        step = Command(("touch", FILE), creates=FILE, undo=("rm", "-f", FILE))

        assert place.verdict(step).reason == f"`{FILE}` does not exist"
        place.run(step)
        assert place.verdict(step).reason == f"`{FILE}` exists"
        for _ in range(2):
            place.undo(step)
            assert place.state() == before

    def test_other_guards(self, place: LabPlace) -> None:
        yes, no = ("true",), ("sh", "-c", "exit 3")

        assert place.verdict(Command(("true",), unless=yes)).satisfied
        assert not place.verdict(Command(("true",), unless=no)).satisfied
        assert place.verdict(Command(("true",), only_if=no)).satisfied
        assert not place.verdict(Command(("true",), only_if=yes)).satisfied
        with pytest.raises(StepFailed, match="can't ask `no-such-program`"):
            place.verdict(Command(("true",), only_if=("no-such-program",)))

    def test_it_runs_as_whom_where_and_with_what_it_is_told(self, place: LabPlace) -> None:
        place.prepare(f"chmod 0777 {ROOT}")
        script = 'echo "$(id -un) $(pwd) $PLAIN $TOKEN $(cat)" >told'
        step = Command(
            ("sh", "-c", script),
            user="ops",
            cwd=ROOT,
            env={"PLAIN": "it's $HOME"},
            secret_env={"TOKEN": "env://TOKEN"},
            stdin="in\n",
        )

        place.run(step)

        assert place.sh(f"cat {ROOT}/told") == f"ops {ROOT} it's $HOME s3cret in"
        assert place.sh(f"stat -c %U {ROOT}/told") == "ops"

    def test_its_failure_is_told_in_its_own_words(self, place: LabPlace) -> None:
        step = Command(("sh", "-c", "echo why >&2; exit 3"))

        with pytest.raises(CommandFailed, match="exited with 3") as caught:
            place.run(step)

        assert caught.value.stderr == "why"
        assert place.run(Command(step.argv, expect=(3,))) == Outcome(stderr="why")


UNIT = "/etc/systemd/system/steps.service"
SEEN = "/run/steps.seen"
PLAIN_UNIT = (
    f"[Service]\nExecStart=/bin/sh -c 'cp {FILE} {SEEN}; exec sleep infinity'\n"
    "[Install]\nWantedBy=multi-user.target\n"
)
FLAPPING = (
    "[Service]\nExecStart=/bin/false\nRestart=always\nRestartSec=100\n"
    "[Install]\nWantedBy=multi-user.target\n"
)
STATES = "systemctl show -p LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload steps"
NO_UNIT = (
    f"systemctl disable -q --now steps 2>/dev/null || :; rm -f {UNIT} {SEEN};"
    "systemctl daemon-reload; systemctl reset-failed steps 2>/dev/null || :"
)


@pytest.fixture
def served(place: LabPlace) -> LabPlace:
    """A host with a unit that is stopped and not enabled."""
    has_unit(place, PLAIN_UNIT)
    return place


def has_unit(place: LabPlace, text: str) -> None:
    place.prepare("", NO_UNIT)
    place.lab.ssh(f"root@{place.name}", f"cat >{UNIT}; systemctl daemon-reload", stdin=text)
    place.prepare(f"echo first >{FILE}")
    place.look = STATES


def main_pid(place: LabPlace) -> str:
    return place.sh("systemctl show -p MainPID steps")


class TestServices:
    @pytest.mark.parametrize(
        ("step", "before"),
        [
            (Service("steps"), ""),
            (Service("steps", enabled=None), ""),
            (Service("steps", running=None), ""),
            (Service("steps"), "systemctl enable -q steps"),
            (Service("steps", running=False, enabled=False), "systemctl enable -q --now steps"),
            (Service("steps", running=False, enabled=None), "systemctl start steps"),
            (Service("steps", restarts_on=(FILE,)), ""),
        ],
        ids=lambda value: value.summary() if isinstance(value, Step) else value,
    )
    def test_a_unit_is_needed_then_satisfied_then_undone(
        self, served: LabPlace, step: Service, before: str
    ) -> None:
        served.prepare(before)

        proves(served, step, "~")

    def test_a_unit_runs_with_its_files_as_they_are_also_when_they_are_put_back(
        self, served: LabPlace
    ) -> None:
        file = FilePresent(FILE, content="second\n")
        step = Service("steps", enabled=None, restarts_on=(FILE,))
        served.run(step)
        first, served.ledger = main_pid(served), MemoryLedger()

        served.run(file)
        assert "were changed" in served.verdict(step).reason
        served.run(step)

        assert (served.sh(f"cat {SEEN}"), served.verdict(step).satisfied) == ("second", True)
        assert main_pid(served) != first
        served.undo(step)
        served.undo(file)
        assert served.wait(step.settle(served.context()))
        assert (served.sh(f"cat {SEEN}"), served.verdict(step).satisfied) == ("first", True)
        assert not served.wait(step.settle(served.context()))

    def test_a_unit_of_our_own_is_gone_afterwards(self, place: LabPlace) -> None:
        place.prepare("", NO_UNIT)
        place.look = STATES
        before = place.state()
        file, step = FilePresent(UNIT, content=PLAIN_UNIT), Service("steps")
        place.run(file)
        place.run(step)
        assert place.verdict(step).satisfied

        place.undo(step)
        place.undo(file)
        place.wait(step.settle(place.context()))

        assert place.state() == before

    def test_a_unit_file_that_was_changed_is_read_anew(self, served: LabPlace) -> None:
        step = Service("steps")
        served.run(step)
        first = main_pid(served)
        served.run(FilePresent(UNIT, content=f"{PLAIN_UNIT}Alias=steps-too.service\n"))

        assert "its unit file was changed" in served.verdict(step).reason
        served.run(step)

        assert served.verdict(step).satisfied
        assert main_pid(served) != first

    def test_a_unit_that_systemd_starts_again_and_again_is_not_at_rest(
        self, place: LabPlace
    ) -> None:
        has_unit(place, FLAPPING)
        before = place.state()
        step = Service("steps")

        place.run(step)

        place.sh("until systemctl show -p ActiveState steps | grep -q activating; do :; done")
        assert "is activating, want active" in place.verdict(step).reason
        stopped = Service("steps", running=False, enabled=None)
        assert place.verdict(stopped).reason == "is activating, want inactive"
        place.undo(step)
        assert place.state() == before
        assert place.verdict(stopped).satisfied

    def test_a_unit_that_does_not_start_is_told_with_what_systemd_says(
        self, place: LabPlace
    ) -> None:
        has_unit(place, "[Service]\nType=exec\nExecStart=/no/such\n")
        step = Service("steps", enabled=None)

        with pytest.raises(CommandFailed, match="systemctl start"):
            place.run(step)

        assert "/no/such" in place.wait(step.diagnose(place.context()))

    def test_a_unit_that_can_not_be_enabled_is_only_started(self, place: LabPlace) -> None:
        has_unit(place, "[Service]\nExecStart=/bin/sleep infinity\n")

        proves(place, Service("steps"), "~")

    def test_a_unit_that_is_masked_or_not_known_is_refused(self, served: LabPlace) -> None:
        served.prepare(f"rm {UNIT}; systemctl mask -q steps", "systemctl unmask -q steps")

        with pytest.raises(StepFailed, match="is masked"):
            served.verdict(Service("steps"))
        with pytest.raises(StepFailed, match="knows no unit `no-such`"):
            served.verdict(Service("no-such"))
        assert served.verdict(Service("no-such", running=False, enabled=False)).satisfied


def test_a_run_that_fails_leaves_a_host_as_it_was(debian12: LabPlace, tmp_path: Path) -> None:
    has_unit(debian12, PLAIN_UNIT)
    debian12.prepare(f"{WHOLE_TREE}; {SAVED}; systemctl start steps", f"{NO_SHOP}; {UNSET}")
    debian12.look = f"{STATES}; cat {SEEN}; {WHO}; {SETTINGS}"
    before, control = debian12.state(), Control(debian12.lab, tmp_path)
    control.write(
        f"""
        - {{name: user, user: {{name: shop, groups: [adm]}}}}
        - {{name: place, directory: {{path: {TREE}/new/place, owner: shop, mode: "2750"}}}}
        - {{name: config, file: {{path: {FILE}, content: second, owner: shop}}}}
        - {{name: service, service: {{unit: steps, restartsOn: [{FILE}]}}}}
        - {{name: settings, sysctl: {{name: 90-steps, settings: {{net.ipv4.ip_forward: 1}}}}}}
        - {{name: ran, assert: {{argv: [grep, second, {SEEN}]}}}}
        - {{name: gone, absent: {{path: {TREE}, recursive: true}}}}
        - {{name: fails, command: {{argv: ["false"]}}}}
        """,
        hosts="node1",
        onFailure="rollback",
    )

    code, out, _ = control.run()

    assert (code, "RolledBack" in out, "`false` exited with 1" in out) == (1, True, True), out
    assert debian12.state() == before


# Flat repositories are made by dpkg-scanpackages, which these hosts have not.
REPOSITORY = f"""
cd {ROOT}; mkdir repository
add() {{
  mkdir -p build/DEBIAN build/etc; echo "$2" >build/etc/"$1".conf
  echo /etc/"$1".conf >build/DEBIAN/conffiles
  printf 'Package: %s\\nVersion: %s\\nArchitecture: all\\nDepends: %s\\n' "$@" >build/DEBIAN/control
  printf 'Maintainer: steps <steps@example.org>\\nDescription: steps\\n' >>build/DEBIAN/control
  sed -i '/^Depends: $/d' build/DEBIAN/control
  dpkg-deb --root-owner-group -b build repository/"$1_$2.deb" >/dev/null
  rm -r build
  cd repository
  dpkg-deb -f "$1_$2.deb" >>Packages
  printf 'Filename: ./%s\\nSize: %s\\n' "$1_$2.deb" "$(stat -c %s "$1_$2.deb")" >>Packages
  printf 'SHA256: %s\\n\\n' "$(sha256sum <"$1_$2.deb" | cut -c-64)" >>Packages
  cd ..
}}
add steps-tool 1.0 ""; add steps-tool 2.0 ""; add steps-lib 1.0 ""; add steps-suite 1.0 steps-lib
"""
INSTALLED = r"dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n'"
NO_PACKAGES = (
    "dpkg --purge steps-tool steps-suite steps-lib >/dev/null 2>&1;"
    "rm -f /etc/apt/sources.list.d/steps.list; apt-get -qq update"
)


@pytest.fixture
def stocked(place: LabPlace) -> LabPlace:
    """A host with a repository of its own: it can reach no other."""
    place.prepare(REPOSITORY, NO_PACKAGES)
    place.wait(packages.add_repository(place.host, "steps", f"{ROOT}/repository"))
    place.wait(packages.refresh(place.host, only="steps"))
    place.look = INSTALLED
    return place


INSTALL = "apt-get -qq -y install steps-tool=1.0 >/dev/null"


class TestPackages:
    @pytest.mark.parametrize(
        ("step", "sign", "before"),
        [
            (Package(("steps-tool",)), "+", ""),
            (Package(("steps-tool=1.0", "curl")), "~", ""),
            (Package(("steps-tool=2.0",)), "~", INSTALL),
            (Package(("steps-tool",), present=False), "-", INSTALL),
        ],
        ids=lambda value: value.summary() if isinstance(value, Step) else value,
    )
    def test_packages_are_needed_then_satisfied_then_undone(
        self, stocked: LabPlace, step: Package, sign: str, before: str
    ) -> None:
        stocked.prepare(before)

        proves(stocked, step, sign)

    def test_lists_are_fetched_if_a_package_is_not_known(self, debian12: LabPlace) -> None:
        debian12.prepare(REPOSITORY, NO_PACKAGES)
        debian12.wait(packages.add_repository(debian12.host, "steps", f"{ROOT}/repository"))
        step = Package(("steps-tool",))

        debian12.run(step)

        assert debian12.verdict(step).satisfied

    def test_a_package_that_there_is_not_is_named(self, debian12: LabPlace) -> None:
        with pytest.raises(CommandFailed) as caught:
            debian12.run(Package(("no-such-package",)))

        assert "Unable to locate package no-such-package" in caught.value.stderr

    def test_what_was_brought_along_stays_when_a_package_is_undone(self, stocked: LabPlace) -> None:
        """Somebody else may need it by now; `apt-get autoremove` takes it away."""
        step = Package(("steps-suite",))
        stocked.run(step)

        stocked.undo(step)

        assert stocked.sh("dpkg-query -W | grep ^steps").split() == ["steps-lib", "1.0"]
        assert stocked.sh("apt-mark showauto steps-lib") == "steps-lib"


# systemd takes the connections, and a shell answers each: these hosts have no server of the web.
WEB = f"""
cat >{ROOT}/web <<'END'
read -r _ path _
while read -r line && [ ${{#line}} -gt 1 ]; do :; done
printf 'HTTP/1.0 %s x\\r\\n\\r\\n' "${{path#/}}"
END
cat >/etc/systemd/system/steps-web.socket <<END
[Socket]
ListenStream=127.0.0.1:8099
Accept=yes
END
cat >/etc/systemd/system/steps-web@.service <<END
[Service]
StandardInput=socket
ExecStart=/bin/bash {ROOT}/web
END
systemctl daemon-reload; systemctl start steps-web.socket
"""
NO_WEB = (
    "systemctl stop steps-web.socket; systemctl stop 'steps-web@*';"
    "rm -f /etc/systemd/system/steps-web.socket /etc/systemd/system/steps-web@.service;"
    "systemctl daemon-reload"
)
HERE = "http://127.0.0.1:8099"


class TestWaits:
    @pytest.mark.parametrize(
        ("step", "reason"),
        [
            (WaitFor(port=22), ""),
            (WaitFor(port=8098), "port 8098 of 127.0.0.1 is closed"),
            (WaitFor(url=f"{HERE}/200"), ""),
            (WaitFor(url=f"{HERE}/404", status=404), ""),
            (WaitFor(url=f"{HERE}/404"), f"{HERE}/404 answers 404, want 200 to 399"),
            (WaitFor(url=f"{HERE}/200", status=204), f"{HERE}/200 answers 200, want 204"),
            (WaitFor(url="http://127.0.0.1:8098/"), "http://127.0.0.1:8098/ does not answer"),
            (WaitFor(command=("test", "-d", ROOT)), ""),
            (WaitFor(command=("test", "-d", TREE)), f"`test -d {TREE}` exited with 1"),
        ],
        ids=lambda value: value.summary() if isinstance(value, Step) else "",
    )
    def test_what_is_there_and_what_is_not_yet(
        self, place: LabPlace, step: WaitFor, reason: str
    ) -> None:
        if step.url is not None:
            place.prepare(WEB, NO_WEB)

        came = place.run(step)

        assert isinstance(came, NotYet if reason else Outcome)
        assert place.verdict(step).satisfied is not bool(reason)
        assert place.verdict(step).reason.startswith(reason)

    def test_another_host_and_one_that_does_not_answer(self, debian12: LabPlace) -> None:
        there = debian12.lab.address("trixie1")

        assert debian12.verdict(WaitFor(port=22, address=there)).satisfied
        assert not debian12.verdict(WaitFor(port=2222, address=there)).satisfied

    def test_a_pause_takes_its_time(self, debian12: LabPlace) -> None:
        step = Pause(seconds=3)

        assert debian12.run(step) == NotYet(3, "3 s are left")
        assert debian12.run(step, waited=3) == Outcome(changed=False)


class TestChecksAndValues:
    def test_a_command_that_succeeds_holds_and_one_that_fails_refuses(
        self, place: LabPlace
    ) -> None:
        assert place.run(Assert(argv=("test", "-d", ROOT))) == Outcome(changed=False)
        with pytest.raises(Refused, match="exited with 2: why"):
            place.run(Assert(argv=("sh", "-c", "echo why >&2; exit 2")))

    def test_a_value_is_read_as_it_is_told_to(self, place: LabPlace) -> None:
        said = ("printf", "%s", '["a"]\n\n[1]\n')

        assert place.run(FetchValue("v", ("hostname",))) == Outcome(
            changed=False, values={"v": place.name}
        )
        assert value_of(place, FetchValue("v", said, parse="lines")) == ['["a"]', "[1]"]
        assert value_of(place, FetchValue("v", ("echo", "[1]"), parse="json")) == [1]
        with pytest.raises(StepFailed, match="did not write JSON"):
            place.run(FetchValue("v", said, parse="json"))
        with pytest.raises(CommandFailed, match="exited with 1"):
            place.run(FetchValue("v", ("false",)))

    def test_a_value_is_made_by_whom_it_is_told_to(self, place: LabPlace) -> None:
        script = f"echo made >>{FILE}; chmod 0600 {FILE}; id -un"

        made = place.run(Minted("v", ("sh", "-c", script), secret=True))

        assert made == Outcome(values={"v": "root"})
        assert place.sh(f"cat {FILE}") == "made"
        assert value_of(place, Minted("v", ("id", "-un"), user="ops")) == "ops"
        assert place.said == [], "what makes a value says nothing"
        with pytest.raises(StepFailed, match="its output is not shown") as caught:
            place.run(Minted("v", ("sh", "-c", f"cat {FILE} >&2; exit 1"), secret=True))
        assert "made" not in caught.value.message


def value_of(place: LabPlace, step: Step) -> object:
    done = place.run(step)
    assert isinstance(done, Outcome)
    return done.values["v"]
