"""Members of a cluster by kubeadm: begun, joined, interrupted, changed, taken out again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.pki.samples import authority
from tests.step.listening import Cluster, answering, kubectl, shown

from kubexm.errors import Refused, StepFailed
from kubexm.pki import reading
from kubexm.runner import kubeadm
from kubexm.sim import Effects, Script
from kubexm.step.contract import Outcome
from kubexm.step.control_plane import JoinToken, PhasesDone
from kubexm.step.files import FilePresent
from kubexm.step.kubeadm import MEMBERSHIP, Initialised, Joined, Reset
from kubexm.step.services import Service

CONF = "/etc/kubernetes/kubelet.conf"
MARKER = "/var/lib/kubexm/records/kubeadm.json"
JOIN = {"join": {"token": "abcdef.0123456789abcdef", "caHashes": ["sha256:42"]}}
TEXT = "token: {{ token }}\nhashes: {{ ca_hashes | yaml }}\nnode: {{ node }}\n"
MEMBER = Effects(files={CONF: "kubeconfig"}, services={"kubelet": True})
INIT = answering("kubeadm", "init", "**", effects=MEMBER)
JOINED = answering("kubeadm", "join", "**", effects=MEMBER)
RESET = answering("kubeadm", "reset", "**", effects=Effects(absent=(CONF,)))
TOKEN = answering("kubeadm", "token", "create", "**", stdout="abcdef.0123456789abcdef\n")
FAILED = """\
	[WARNING Service-kubelet]: kubelet service is not enabled
[preflight] Some fatal errors occurred:
	[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2
	[ERROR Swap]: running with swap on is not supported
error: error execution phase preflight: preflight checks failed
To see the stack trace of this error execute with --v=5 or higher
"""
SWAP = (
    'E1118 08:04:05.000001    1234 run.go:72] "command failed" err="failed to run Kubelet: running'
    ' with swap on is not supported, please disable swap or set --fail-swap-on flag to false"'
)
OUT = "kubeadm reset --force --cri-socket unix:///run/containerd/containerd.sock"
Make = Callable[..., Cluster]


def joined(**fields: Any) -> Joined:
    return Joined(**{"text": TEXT, "data": {"node": "w1"}, **fields})


def marked(place: Cluster) -> Any:
    return json.loads(place.ask("cat", MARKER))


def begin(place: Cluster, role: str = "init") -> None:
    """Leave what an attempt has left that was killed."""
    state = {"state": "begun", "role": role}
    place.wait(kubeadm.mark(place.host, kubeadm.Marker(**state)))  # type: ignore[arg-type]


def test_a_member_of_another_cluster_is_refused(cluster: Make) -> None:
    place = cluster(INIT, JOINED)
    place.run(Initialised(cluster="staging"))
    assert marked(place)["cluster"] == "staging"
    place.forget()

    for step in (Initialised(cluster="prod"), joined(cluster="prod", control_plane=True)):
        with pytest.raises(Refused, match="a member of the cluster `staging`"):
            place.verdict(step)
        with pytest.raises(Refused, match="a member of the cluster `staging`"):
            place.run(step, values=JOIN)

    assert place.told == []
    assert place.verdict(Initialised(cluster="staging")).satisfied
    assert place.verdict(Initialised()).satisfied


def test_a_cluster_is_begun_once(cluster: Make) -> None:
    place = cluster(INIT)
    step = Initialised(skip_phases=("addon", "mark-control-plane"), ignore_errors=("NumCPU",))
    before = place.verdict(step)

    place.run(step)

    config = "--config /etc/kubernetes/kubexm/kubeadm.yaml"
    phases = "--skip-phases addon,mark-control-plane"
    assert (before.satisfied, before.sign) == (False, "+")
    assert place.told == [
        f"kubeadm init --skip-token-print {config} {phases} --ignore-preflight-errors NumCPU"
    ]
    assert marked(place) == {"state": "done", "role": "init", "part": "control-plane"}
    assert place.verdict(step).satisfied


def test_a_host_of_a_cluster_that_is_not_ours_is_refused(cluster: Make) -> None:
    place = cluster(INIT)
    place.run(FilePresent(CONF, content="of another cluster"))

    for step in (Initialised(), joined()):
        with pytest.raises(Refused, match="a cluster that kubexm did not make") as caught:
            place.verdict(step)
        assert "kubeadm reset" in caught.value.hint
    assert place.verdict(Reset()).satisfied


def test_a_host_that_does_not_pass_the_checks_is_told_all_of_them(cluster: Make) -> None:
    place = cluster(answering("kubeadm", "init", "**", exit=1, stderr=FAILED))

    with pytest.raises(StepFailed) as caught:
        place.run(Initialised())

    assert caught.value.message == (
        "`kubeadm init` exited with 1: NumCPU: the number of available CPUs 1 is less than the"
        " required 2; Swap: running with swap on is not supported"
    )
    assert ("stderr", "error: error execution phase preflight: preflight checks failed") in (
        place.said
    )


def test_what_did_not_pass_the_checks_was_never_begun(cluster: Make) -> None:
    place = cluster(answering("kubeadm", "init", "**", exit=1, stderr=FAILED))

    for _ in range(2):
        with pytest.raises(StepFailed):
            place.run(Initialised())

    assert place.verdict(Initialised()).reason == "is no member of a cluster"
    assert MEMBERSHIP not in place.ledger.entries
    assert "--ignore-preflight-errors" not in place.told[1]


def test_what_failed_later_was_begun(cluster: Make) -> None:
    late = "error: error execution phase wait-control-plane: could not initialize a cluster\n"
    place = cluster(answering("kubeadm", "init", "**", exit=1, stderr=late))

    with pytest.raises(StepFailed, match="phase wait-control-plane"):
        place.run(Initialised())

    assert marked(place) == {"state": "begun", "role": "init", "part": "control-plane"}
    assert place.verdict(Initialised()).reason == "kubeadm was begun here, and did not finish"


def test_another_attempt_does_not_trip_over_what_the_first_has_left(cluster: Make) -> None:
    place = cluster(INIT)
    begin(place)
    step = Initialised(ignore_errors=("NumCPU",), port=7443, etcd_data="/data/etcd")

    place.run(step)

    (told,) = place.told
    ignored = told.rpartition(" ")[2].split(",")
    assert ignored[0] == "NumCPU"
    assert {"Port-7443", "Port-10250", "DirAvailable--data-etcd"} <= set(ignored)
    assert "FileAvailable--etc-kubernetes-manifests-kube-apiserver.yaml" in ignored
    assert not {"Swap", "Port-6443", "all"} & set(ignored)


def test_a_first_attempt_ignores_nothing_by_itself(cluster: Make) -> None:
    place = cluster(INIT)

    place.run(Initialised())

    assert place.told == [
        "kubeadm init --skip-token-print --config /etc/kubernetes/kubexm/kubeadm.yaml"
    ]


def test_the_kubelet_is_known_to_have_started_with_its_files(cluster: Make) -> None:
    place = cluster(INIT)
    paths = ("/etc/kubernetes/kubelet.yaml", "/etc/kubernetes/kubelet.conf")
    place.run(FilePresent(paths[0], content="kind: KubeletConfiguration\n"))
    unit = Service("kubelet", enabled=None, restarts_on=paths)

    place.run(Initialised(records={"kubelet": paths}))

    assert place.verdict(unit).satisfied
    place.run(FilePresent(paths[0], content="kind: Other\n"))
    assert "were changed since its last start" in place.verdict(unit).reason


def test_a_host_joins_by_a_configuration_that_is_gone_afterwards(cluster: Make) -> None:
    place = cluster(JOINED)
    step = joined(ignore_errors=("FileAvailable--etc-kubernetes-pki-ca.crt",))

    place.run(step, values=JOIN)

    ignored = "--ignore-preflight-errors FileAvailable--etc-kubernetes-pki-ca.crt"
    assert place.told == [f"kubeadm join --config /run/kubexm/kubeadm-join.yaml {ignored}"]
    assert place.ask("ls", "-A", "/run") == ""
    assert marked(place) == {"state": "done", "role": "join"}
    assert place.verdict(step).satisfied
    assert step.needs() == ("join",)


def test_the_configuration_is_private_and_has_the_token(cluster: Make) -> None:
    place = cluster(answering("kubeadm", "join", "**", exit=1, stderr="error: no API server\n"))
    seen = place.watch("/run/kubexm/kubeadm-join.yaml")

    with pytest.raises(StepFailed, match="no API server"):
        place.run(joined(overrides={"node": "w2"}), values=JOIN)

    expected = "token: abcdef.0123456789abcdef\nhashes:\n- sha256:42\nnode: w2\n"
    assert seen == [(expected, 0o600)]
    assert place.ask("ls", "-A", "/run") == ""
    assert "abcdef" not in " ".join(text for _, text in place.said)


def test_a_host_whose_kubelet_has_joined_before_goes_on_from_there(cluster: Make) -> None:
    place = cluster(JOINED)
    begin(place, "join")
    place.run(FilePresent(CONF, content="kubeconfig"))
    place.run(FilePresent("/etc/systemd/system/kubelet.service", content="[Service]\n"))

    place.run(joined(), values=JOIN)

    (told,) = place.told
    assert "--skip-phases kubelet-start --ignore-preflight-errors" in told
    assert "FileAvailable--etc-kubernetes-kubelet.conf" in told
    assert place.world.host("there").runs("kubelet")


def test_what_only_failed_to_begin_joins_as_if_for_the_first_time(cluster: Make) -> None:
    place = cluster(JOINED)
    begin(place, "join")

    place.run(joined(), values=JOIN)

    assert "--skip-phases" not in place.told[0]


def test_a_member_that_was_reset_by_hand_is_begun_anew(cluster: Make) -> None:
    place = cluster(JOINED)
    place.run(joined(), values=JOIN)
    place.ask("rm", CONF)

    verdict = place.verdict(joined())

    assert (verdict.satisfied, verdict.reason) == (False, f"`{CONF}` is gone")


@pytest.mark.parametrize("was", [False, True])
def test_a_member_does_not_become_one_of_another_kind(cluster: Make, was: bool) -> None:
    place = cluster(JOINED)
    place.run(joined(control_plane=was), values=JOIN)

    for ask in (place.verdict, place.run):
        with pytest.raises(Refused, match="was made a member by joining as") as caught:
            ask(joined(control_plane=not was))
        assert "leave its role as it was" in caught.value.hint

    assert len(place.told) == 1
    assert place.verdict(joined(control_plane=was)).satisfied


def test_a_member_of_which_nobody_noted_the_kind_stays_one(cluster: Make) -> None:
    place = cluster(JOINED)
    place.run(joined(), values=JOIN)

    assert marked(place) == {"state": "done", "role": "join"}
    assert place.verdict(joined(control_plane=True)).satisfied


def test_who_began_to_join_begins_no_cluster(cluster: Make) -> None:
    place = cluster(INIT)
    begin(place, "join")

    with pytest.raises(Refused, match="by `kubeadm join`, and this would make it one by"):
        place.run(Initialised())

    assert place.told == []


def test_a_rollback_takes_the_host_out_of_the_cluster_again(cluster: Make) -> None:
    place = cluster(JOINED, RESET)
    place.run(joined(), values=JOIN)

    place.undo(joined())

    assert place.told[1:] == [OUT]
    assert place.verdict(joined()).sign == "+"


def test_a_rollback_leaves_a_host_that_this_run_has_not_changed(cluster: Make) -> None:
    place = cluster(JOINED, RESET)
    begin(place)

    place.undo(joined())

    assert place.told == []


def test_what_a_rollback_has_taken_out_is_not_taken_out_again(cluster: Make) -> None:
    place = cluster(JOINED, RESET)
    place.run(joined(), values=JOIN)
    place.undo(joined())
    place.forget()

    place.undo(joined())

    assert place.told == []
    assert place.ledger.entries == {}


def test_a_rollback_of_what_is_no_member_any_more_wants_no_kubeadm(cluster: Make) -> None:
    place = cluster(JOINED)
    place.run(joined(), values=JOIN)
    place.ask("rm", CONF, MARKER)
    place.forget()

    place.undo(joined())

    assert place.told == []
    assert place.ledger.entries == {}


def test_a_member_whose_record_is_lost_is_taken_out_as_the_ledger_knows_it(cluster: Make) -> None:
    place = cluster(JOINED, RESET)
    place.run(joined(), values=JOIN)
    place.ask("rm", MARKER)
    place.forget()

    place.undo(joined())

    assert place.told == [OUT]


def test_a_failed_attempt_tells_why_pods_do_not_run(cluster: Make) -> None:
    kubelet = Script(
        ("journalctl", "--unit", "kubelet", "**"), stdout=f"I0101 all is well\n{SWAP}\n"
    )
    containers = answering(
        "ctr", "-n", "k8s.io", "containers", "ls",
        stdout="CONTAINER IMAGE RUNTIME\na1 registry/kube-apiserver:v1 io\nb2 pause:3 io\n",
    )  # fmt: skip
    tasks = answering(
        "ctr", "-n", "k8s.io", "tasks", "ls", stdout="TASK PID STATUS\na1 7 STOPPED\nb2 8 RUNNING\n"
    )
    place = cluster(kubelet, Script(("journalctl", "**")), containers, tasks)
    phases = PhasesDone("control-plane", (("control-plane", "all"),), ("/etc/hosts",))

    for step in (Initialised(), phases):
        said = place.wait(step.diagnose(place.context())).splitlines()

        assert said[0] == "cause: swap is on"
        assert "`swapoff -a`" in said[1]
        assert said[2:] == [
            "containers that do not run:",
            "  of registry/kube-apiserver:v1",
            "journal of kubelet:",
            f"  {SWAP.partition('1234 ')[2]}",
        ]


def test_a_reset_removes_what_kubeadm_leaves_and_is_done_once(cluster: Make) -> None:
    place = cluster(JOINED, RESET)
    place.run(joined(), values=JOIN)
    place.ask("mkdir", "-p", "/var/lib/cni/networks", "/var/lib/etcd/member")
    step = Reset(skip_phases=("remove-etcd-member",), paths=("/var/lib/etcd", "/var/lib/cni"))
    before = place.verdict(step)
    place.forget()

    place.run(step)

    assert (before.satisfied, before.sign) == (False, "-")
    assert place.told == [f"{OUT} --skip-phases remove-etcd-member"]
    assert "cni" not in place.ask("ls", "/var/lib")
    assert "etcd" not in place.ask("ls", "/var/lib")
    assert place.verdict(step).satisfied
    assert place.ledger.entries == {}


def test_a_reset_removes_the_token_of_an_attempt_that_was_killed(cluster: Make) -> None:
    place = cluster(JOINED, RESET)
    place.run(joined(), values=JOIN)
    place.ask("mkdir", "-p", "/run/kubexm")
    place.run(FilePresent("/run/kubexm/kubeadm-join.yaml", content="token: a.b\n"))

    place.run(Reset())

    assert place.ask("ls", "/run").split() == []


def test_a_reset_that_failed_is_tried_again(cluster: Make) -> None:
    fails = answering("kubeadm", "reset", "**", exit=1, stderr="error: busy\n", times=1)
    place = cluster(JOINED, fails, RESET)
    place.run(joined(), values=JOIN)

    with pytest.raises(StepFailed, match="busy"):
        place.run(Reset())
    again = place.verdict(Reset())
    place.run(Reset())

    assert not again.satisfied
    assert place.verdict(Reset()).satisfied


SETTINGS = "/etc/kubernetes/kubexm/kubeadm.yaml"
PHASE = answering("kubeadm", "init", "phase", "**")


def phases() -> PhasesDone:
    words = (("control-plane", "all"), ("upload-config", "kubeadm"))
    return PhasesDone(record="control-plane", phases=words, files=(SETTINGS,))


def test_phases_are_run_when_their_files_have_changed(cluster: Make) -> None:
    place = cluster(PHASE, INIT)
    place.run(FilePresent(SETTINGS, content="a: 1\n"))
    place.run(Initialised(records={"control-plane": (SETTINGS,)}))
    first = place.verdict(phases())
    place.run(FilePresent(SETTINGS, content="a: 2\n"))
    changed = place.verdict(phases())
    place.forget()

    place.run(phases())

    assert first.satisfied
    assert changed.reason == "files it goes by were changed"
    assert place.told == [
        f"kubeadm init phase control-plane all --config {SETTINGS}",
        f"kubeadm init phase upload-config kubeadm --config {SETTINGS}",
    ]
    assert place.verdict(phases()).satisfied


def test_after_a_rollback_the_control_plane_goes_by_the_old_files_again(cluster: Make) -> None:
    place = cluster(PHASE, INIT)
    old = FilePresent(SETTINGS, content="a: 1\n")
    place.run(old)
    place.run(Initialised(records={"control-plane": ("/etc/hostname",)}))
    place.run(phases())
    place.run(FilePresent(SETTINGS, content="a: 2\n"))
    place.forget()

    place.undo(phases())
    nothing_yet = list(place.told)
    settled = place.wait(phases().settle(place.context()))

    assert nothing_yet == []
    assert settled
    assert len(place.told) == 2
    assert not place.wait(phases().settle(place.context()))


def test_without_a_control_plane_there_is_nothing_to_settle(cluster: Make) -> None:
    place = cluster(PHASE)
    place.run(FilePresent(SETTINGS, content="a: 1\n"))
    place.run(phases())
    place.ask("rm", SETTINGS)
    place.forget()

    assert not place.wait(phases().settle(place.context()))
    assert place.told == []
    assert place.ask("ls", "/var/lib/kubexm/services") == ""


def test_a_pod_is_awaited_until_it_has_the_marks_of_its_file(cluster: Make) -> None:
    def pod(mark: str, **more: str) -> dict[str, Any]:
        marks = {"kubexm.io/audit-policy": mark, **more}
        program = {"name": "kube-apiserver", "image": "a", "command": ["kube-apiserver"]}
        metadata = {"name": "kube-apiserver-there", "annotations": marks}
        status = {"phase": "Running"}
        return {"metadata": metadata, "spec": {"containers": [program]}, "status": status}

    old, new = ({"items": [pod(mark, seen="now")]} for mark in ("1", "2"))
    place = cluster(
        PHASE,
        kubectl("get", "**", stdout=shown(old), times=2),
        kubectl("get", "**", stdout=shown(new)),
    )
    place.ask("mkdir", "-p", "/etc/kubernetes/manifests")
    path = "/etc/kubernetes/manifests/kube-apiserver.yaml"
    place.run(FilePresent(path, content=json.dumps(pod("2"))))
    place.run(FilePresent(SETTINGS, content="a: 1\n"))

    place.run(phases())

    assert len([words for words in place.told if words.startswith("kubectl get")]) == 3


def test_a_phase_that_failed_is_not_taken_for_done(cluster: Make) -> None:
    fails = answering(
        "kubeadm", "init", "phase", "upload-config", "**", exit=1, stderr="error: x\n"
    )
    place = cluster(fails, PHASE)
    place.run(FilePresent(SETTINGS, content="a: 1\n"))

    with pytest.raises(StepFailed, match="`kubeadm init` exited with 1: x"):
        place.run(phases())

    assert not place.verdict(phases()).satisfied


def test_a_token_comes_with_the_digest_of_the_authority(cluster: Make) -> None:
    signed = {"data": {"jws-kubeconfig-abcdef": "x"}}
    place = cluster(TOKEN, kubectl("get", "**", stdout=shown(signed)))
    pem = authority().certificate
    place.run(FilePresent("/etc/kubernetes/pki/ca.crt", content=pem.decode()))
    step = JoinToken(ttl=1800)

    outcome = place.run(step)

    assert place.told[0] == "kubeadm token create --ttl 3600s"
    assert isinstance(outcome, Outcome)
    assert outcome.values == {
        "join": {"token": "abcdef.0123456789abcdef", "caHashes": [reading.public_key_hash(pem)]}
    }
    (key,) = step.provides()
    assert (key.name, key.scope, key.secret, key.ttl) == ("join", "run", True, 1800)
    assert "abcdef" not in " ".join(text for _, text in place.said)


def test_a_token_is_given_to_nobody_before_the_cluster_tells_of_itself(cluster: Make) -> None:
    unsigned = {"data": {"jws-kubeconfig-fedcba": "x"}}
    place = cluster(TOKEN, kubectl("get", "**", stdout=shown(unsigned)))
    pem = authority().certificate
    place.run(FilePresent("/etc/kubernetes/pki/ca.crt", content=pem.decode()))

    async def seconds() -> float:
        return asyncio.get_running_loop().time()

    begun = place.wait(seconds())
    place.run(JoinToken())

    assert place.wait(seconds()) - begun >= 20


def test_a_token_needs_a_control_plane(cluster: Make) -> None:
    refused = answering("kubeadm", "token", "**", exit=1, stderr="error: no such file\n")
    place = cluster(refused)

    with pytest.raises(StepFailed, match=r"no `/etc/kubernetes/pki/ca\.crt`"):
        place.run(JoinToken())
    place.run(FilePresent("/etc/kubernetes/pki/ca.crt", content=authority().certificate.decode()))
    with pytest.raises(StepFailed, match="exited with 1: no such file"):
        place.run(JoinToken())
