"""Authorities and certificates of a cluster, on hosts: made once, and again only what is faulty."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.step.places import LocalPlace, MemoryLedger, Place, SimPlace
from tests.step.walks import Walk, node, statuses, undone

from kubexm.errors import InvalidInput, Refused, StepFailed
from kubexm.pki import certificates as table
from kubexm.pki import found, issue, kept, keys, reading
from kubexm.pki.authorities import Authority
from kubexm.pki.keys import Algorithm
from kubexm.pki.names import Names
from kubexm.pki.request import Host as Holder
from kubexm.plan import ExecutionNode, Key
from kubexm.plan.result import GraphExecutionResult
from kubexm.sim import World
from kubexm.step import registry
from kubexm.step.contract import Outcome, Verdict
from kubexm.step.pki import VALUE, Authorities, Certificates, EncryptionConfig

QUICK: Algorithm = "ECDSA-P256"
SECOND = {"control-plane", "etcd"}
URL = "https://api.demo:6443"


def now() -> datetime:
    return datetime.now(UTC)


def authorities(place: Place, **settings: Any) -> Authorities:
    return Authorities(algorithm=QUICK, directory=f"{place.root}/pki", **settings)


def minted(place: Place, step: Authorities, **settings: Any) -> Outcome:
    outcome = place.run(step, **settings)
    assert isinstance(outcome, Outcome)
    return outcome


def value_of(place: Place, **settings: Any) -> Mapping[str, Any]:
    """The authorities of another host than the one that is looked at."""
    elsewhere = Authorities(algorithm=QUICK, directory=f"{place.root}/first/pki", **settings)
    value: Mapping[str, Any] = minted(place, elsewhere, ledger=MemoryLedger()).values[VALUE]
    return value


def holder(*roles: str, without: tuple[str, ...] = (), **names: Any) -> Holder:
    own = {"host": "cp1", "addresses": ("10.0.0.1",), "services": ("10.96.0.0/12",), **names}
    return Holder(
        Names(**own),
        frozenset(roles),
        endpoint=URL,
        own="https://10.0.0.1:6443",
        without=frozenset(without),
    )


def certificates(place: Place, *roles: str, **settings: Any) -> Certificates:
    host = settings.pop("host", None) or holder(*(roles or ("control-plane", "etcd")))
    return Certificates.of(
        host,
        algorithm=QUICK,
        directory=f"{place.root}/pki",
        kubeconfigs=f"{place.root}/conf",
        **settings,
    )


def there(place: Place, directory: str = "pki") -> dict[str, bytes]:
    """The files of a directory and of the one for etcd in it, by path."""
    top = f"{place.root}/{directory}"
    held: dict[str, str] = {}
    for above in ("", "etcd/"):
        names = place.wait(place.host.ask("ls", "-A", f"{top}/{above}")).text.split()
        held |= {f"{above}{name}": f"{top}/{above}{name}" for name in names if name != "etcd"}
    return {path: place.wait(place.host.get(full)) for path, full in held.items()}


def mode(place: Place, name: str) -> int | None:
    found = place.wait(place.host.stat(f"{place.root}/{name}"))
    return None if found is None else found.mode


@pytest.fixture
def place(sim: SimPlace) -> Place:
    """What steps decide is the same wherever they do it."""
    return sim


@pytest.fixture(params=["local", "sim"])
def anywhere(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made: Place = LocalPlace(tmp_path) if request.param == "local" else SimPlace(tmp_path)
    yield made
    made.close()


@pytest.fixture
def ready(place: Place) -> Place:
    """A control plane that has all of its certificates."""
    place.run(certificates(place), values={VALUE: value_of(place)}, ledger=MemoryLedger())
    return place


def test_authorities_are_made_and_told(anywhere: Place) -> None:
    place = anywhere
    outcome = minted(place, authorities(place))

    held = kept.of_value(outcome.values[VALUE])
    files = there(place)
    assert outcome.changed
    assert held.authorities.keys() == {"ca", "front-proxy-ca", "etcd/ca"}
    assert files.keys() == {
        *("ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key"),
        *("etcd/ca.crt", "etcd/ca.key", "sa.key", "sa.pub"),
    }
    assert files["ca.crt"] == held.authorities["ca"].certificate
    assert (mode(place, "pki/ca.key"), mode(place, "pki/ca.crt")) == (0o600, 0o644)
    assert held.encryption == ""


def test_authorities_that_are_there_stay_as_they_are(place: Place) -> None:
    first = minted(place, authorities(place))
    before = there(place)

    second = minted(place, authorities(place))

    assert second.values == first.values
    assert not second.changed
    assert there(place) == before


def test_without_etcd_of_its_own_a_cluster_has_no_authority_for_it(place: Place) -> None:
    outcome = minted(place, authorities(place, etcd=False))

    assert outcome.values[VALUE]["authorities"].keys() == {"ca", "front-proxy-ca"}
    assert "etcd/ca.crt" not in there(place)


def test_a_key_that_lost_its_certificate_gets_one_and_stays(place: Place) -> None:
    minted(place, authorities(place))
    before = there(place)
    place.ask("rm", f"{place.root}/pki/ca.crt")

    outcome = minted(place, authorities(place))

    after = there(place)
    assert after["ca.key"] == before["ca.key"]
    assert reading.public_key_hash(after["ca.crt"]) == reading.public_key_hash(before["ca.crt"])
    assert outcome.values[VALUE]["authorities"]["ca"]["key"].encode() == before["ca.key"]


def test_an_authority_without_its_key_can_be_told_but_issues_nothing(place: Place) -> None:
    minted(place, authorities(place))
    place.ask("rm", f"{place.root}/pki/ca.key")

    outcome = minted(place, authorities(place))

    assert outcome.values[VALUE]["authorities"]["ca"]["key"] is None
    with pytest.raises(InvalidInput) as caught:
        place.run(certificates(place), values=outcome.values)
    assert "the key of authority `ca` is not here" in str(caught.value)


def test_a_key_of_another_authority_is_refused(place: Place) -> None:
    minted(place, authorities(place))
    place.write("pki/ca.key", keys.private_pem(keys.make(QUICK)), 0o600)

    with pytest.raises(InvalidInput, match="the authority can't be used") as caught:
        minted(place, authorities(place))

    assert "the key does not belong to `CN=kubernetes`" in str(caught.value)


def supplied(place: Place, authority: Authority) -> Authorities:
    assert authority.key is not None
    place.secrets["env://CA_KEY"] = authority.key.decode()
    certificate = authority.certificate.decode()
    return authorities(place, supplied={"ca": certificate}, supplied_keys={"ca": "env://CA_KEY"})


def test_an_authority_that_is_supplied_is_taken(place: Place) -> None:
    ours = issue.authority("ours", now=now(), algorithm=QUICK)

    held = kept.of_value(minted(place, supplied(place, ours)).values[VALUE])

    assert held.authorities["ca"].certificate == ours.certificate
    assert there(place)["ca.key"] == ours.key
    assert reading.read(held.authorities["etcd/ca"].certificate).common_name == "etcd-ca"


def test_another_authority_than_the_one_that_is_there_is_refused(place: Place) -> None:
    minted(place, authorities(place))
    before = there(place)

    with pytest.raises(Refused, match="the host has another one than the one"):
        minted(place, supplied(place, issue.authority("ours", now=now(), algorithm=QUICK)))

    assert there(place) == before


def test_a_supplied_authority_that_can_not_be_used_is_refused(place: Place) -> None:
    expired = issue.authority(
        "ours", now=now() - timedelta(days=9), lifetime=timedelta(days=1), algorithm=QUICK
    )

    with pytest.raises(InvalidInput, match="authority `ca`: the authority can't be used") as caught:
        minted(place, supplied(place, expired))

    assert "expired on" in str(caught.value)
    assert there(place) == {}


def test_authorities_are_taken_away_again_and_what_was_there_is_not(anywhere: Place) -> None:
    place = anywhere
    place.ask("mkdir", "-p", f"{place.root}/pki")
    place.write("pki/other", b"not ours")
    before = place.state()
    step = authorities(place, encryption=True)

    minted(place, step)
    place.undo(step)

    assert place.state() == before


def test_the_key_of_encryption_is_made_once(place: Place) -> None:
    step = authorities(place, encryption=True)

    first, second = minted(place, step).values[VALUE], minted(place, step).values[VALUE]

    assert len(first["encryptionKey"]) == 44
    assert second["encryptionKey"] == first["encryptionKey"]
    assert mode(place, "pki/encryption.key") == 0o600


def test_all_of_a_control_plane_is_made(anywhere: Place) -> None:
    place = anywhere
    step, value = certificates(place), value_of(place)

    before = place.wait(step.precheck(place.context()))
    place.run(step, values={VALUE: value})

    assert (before.satisfied, before.sign) == (False, "+")
    assert place.verdict(step) == Verdict.holds()
    assert there(place).keys() == {
        *("ca.crt", "ca.key", "front-proxy-ca.crt", "front-proxy-ca.key", "sa.key", "sa.pub"),
        *("etcd/ca.crt", "etcd/ca.key", "etcd/server.crt", "etcd/server.key"),
        *("etcd/peer.crt", "etcd/peer.key"),
        *("etcd/healthcheck-client.crt", "etcd/healthcheck-client.key"),
        *("apiserver.crt", "apiserver.key", "apiserver-kubelet-client.crt"),
        *("apiserver-kubelet-client.key", "front-proxy-client.crt", "front-proxy-client.key"),
        *("apiserver-etcd-client.crt", "apiserver-etcd-client.key"),
    }
    assert there(place, "conf").keys() == {
        *("admin.conf", "super-admin.conf", "controller-manager.conf"),
        *("scheduler.conf", "kubelet.conf"),
    }
    assert mode(place, "conf/admin.conf") == mode(place, "pki/etcd/peer.key") == 0o600
    assert mode(place, "pki/apiserver.crt") == 0o644


@pytest.mark.parametrize(
    ("roles", "wanted"),
    [
        (("worker",), {"ca.crt"}),
        (("registry",), {"ca.crt", "registry.crt", "registry.key"}),
        (
            ("etcd",),
            {
                *("etcd/ca.crt", "etcd/server.crt", "etcd/server.key", "etcd/peer.crt"),
                *("etcd/peer.key", "etcd/healthcheck-client.crt", "etcd/healthcheck-client.key"),
            },
        ),
    ],
)
def test_a_host_has_the_files_of_its_roles(
    place: Place, roles: tuple[str, ...], wanted: set[str]
) -> None:
    step = certificates(place, *roles)

    place.run(step, values={VALUE: value_of(place)})

    assert there(place).keys() == wanted
    assert place.verdict(step).satisfied


def test_a_registry_is_known_by_its_own_names(place: Place) -> None:
    host = holder("registry", host="Reg1", extra=("images.example.org",))

    place.run(certificates(place, host=host), values={VALUE: value_of(place)})

    said = reading.read(there(place)["registry.crt"])
    assert {"reg1", "images.example.org"} <= {*said.names.dns}
    assert "10.0.0.1" in said.names.addresses
    assert said.usages == ("server",)


def test_with_an_etcd_of_others_nothing_is_issued_for_it(place: Place) -> None:
    host = holder("control-plane", without=("etcd/ca", "apiserver-etcd-client"))
    step = certificates(place, host=host)

    place.run(step, values={VALUE: value_of(place, etcd=False)})

    assert not [path for path in there(place) if "etcd" in path]
    assert place.verdict(step).satisfied


def test_only_what_is_asked_for_is_made(place: Place) -> None:
    step = certificates(place, only=("apiserver", "admin"))

    place.run(step, values={VALUE: value_of(place)})

    assert "apiserver.crt" in there(place)
    assert "front-proxy-client.crt" not in there(place)
    assert there(place, "conf").keys() == {"admin.conf"}


def renewed(place: Place, step: Certificates) -> set[str]:
    """What was written by a run that was needed, and that all is well afterwards."""
    before = {**there(place), **there(place, "conf")}
    place.run(step, values={VALUE: value_of(place)})
    after = {**there(place), **there(place, "conf")}
    assert place.verdict(step).satisfied
    return {path for path, data in after.items() if before.get(path) != data}


@pytest.mark.parametrize(
    ("lost", "reason", "made"),
    [
        ("pki/apiserver.crt", "`apiserver` is missing", {"apiserver.crt", "apiserver.key"}),
        ("pki/apiserver.key", "`apiserver` lacks its key", {"apiserver.crt", "apiserver.key"}),
        ("pki/sa.pub", "`sa` is missing", {"sa.pub"}),
        ("pki/ca.key", "`ca` lacks its key", {"ca.key"}),
        ("pki/ca.crt", "`ca` is missing", {"ca.crt"}),
        ("conf/admin.conf", "`admin` is missing", {"admin.conf"}),
    ],
)
def test_what_is_lost_is_made_again_and_all_else_stays(
    ready: Place, lost: str, reason: str, made: set[str]
) -> None:
    ready.ask("rm", f"{ready.root}/{lost}")

    assert ready.verdict(certificates(ready)) == Verdict.needed(reason)
    assert renewed(ready, certificates(ready)) == made


def test_a_name_more_takes_one_certificate_more(ready: Place) -> None:
    host = holder("control-plane", "etcd", extra=("api.example.org",))
    step = certificates(ready, host=host)

    reason = "`apiserver` lacks DNS name `api.example.org`"
    assert ready.verdict(step) == Verdict.needed(reason)
    assert renewed(ready, step) == {"apiserver.crt", "apiserver.key"}


def test_another_way_to_the_cluster_takes_new_kubeconfigs(ready: Place) -> None:
    host = replace(holder("control-plane", "etcd"), endpoint="https://other.demo:6443")
    step = certificates(ready, host=host)

    assert f"`admin` names `{URL}`, want `https://other.demo:6443`" in ready.verdict(step).reason
    assert renewed(ready, step) == {"admin.conf", "super-admin.conf", "kubelet.conf"}


def test_a_certificate_that_is_due_is_renewed(ready: Place) -> None:
    own = holder("control-plane")
    row = next(row for row in found.rows_of(own) if row.name == "apiserver")
    signer = issue.opened(kept.of_value(value_of(ready)).authorities[row.authority])
    subject = table.subject(row, own.names)
    lifetime = timedelta(days=10)
    pair = issue.leaf(signer, subject, now=now(), lifetime=lifetime, algorithm=QUICK)
    ready.write(f"pki/{row.path}", pair.certificate)
    ready.write(f"pki/{row.key_path}", pair.key, 0o600)

    assert ready.verdict(certificates(ready)).reason == "`apiserver` expires in 9 days, want 30"
    assert renewed(ready, certificates(ready)) == {"apiserver.crt", "apiserver.key"}


def test_certificates_that_live_short_are_not_always_due(place: Place) -> None:
    step = certificates(place, lifetime=10 * 86400.0)

    place.run(step, values={VALUE: value_of(place)})

    assert place.verdict(step).satisfied


def test_certificates_that_end_with_their_authority_are_not_always_due(place: Place) -> None:
    value = value_of(place, lifetime=20 * 86400.0)

    place.run(certificates(place), values={VALUE: value})

    assert place.verdict(certificates(place)).satisfied


def test_a_kubelet_that_renews_its_certificate_by_itself_is_left_alone(ready: Place) -> None:
    text = ready.read("conf/kubelet.conf").decode()
    kept_lines = [line for line in text.splitlines() if "client-key-data" not in line]
    rotated = "\n".join(kept_lines).replace("client-certificate-data:", "client-certificate: /x #")
    ready.write("conf/kubelet.conf", rotated.encode(), 0o600)

    assert ready.verdict(certificates(ready)).satisfied


@pytest.mark.parametrize("content", [b"nothing: [", b"[]", b"kind: Other", b"\xff"])
def test_a_kubeconfig_that_can_not_be_read_is_written_anew(ready: Place, content: bytes) -> None:
    ready.write("conf/admin.conf", content, 0o600)

    assert ready.verdict(certificates(ready)) == Verdict.needed("`admin` can't be read")
    assert renewed(ready, certificates(ready)) == {"admin.conf"}


@pytest.mark.parametrize("path", ["pki/ca.crt", "pki/ca.key", "pki/sa.key"])
def test_a_host_of_another_cluster_is_refused_and_stays_as_it_is(ready: Place, path: str) -> None:
    other = kept.files(kept.completed({}, {}, kept.Making(now(), algorithm=QUICK)))
    ready.write(path, other[path.removeprefix("pki/")].content, 0o600)
    ready.ask("rm", f"{ready.root}/conf/admin.conf")
    before = ready.state()

    with pytest.raises(Refused, match=f"{path}: it is of another cluster") as caught:
        ready.run(certificates(ready), values={VALUE: value_of(ready)})

    assert caught.value.hint
    assert ready.state() == before


def test_what_was_there_comes_back_and_keys_are_in_no_ledger(ready: Place) -> None:
    ready.write("conf/admin.conf", b"kind: Secret things", 0o600)
    ready.write("pki/apiserver.key", keys.private_pem(keys.make(QUICK)), 0o600)
    before = ready.state()
    step = certificates(ready)

    ready.run(step, values={VALUE: value_of(ready)})
    noted = "".join(ready.ledger.entries.values())
    ready.undo(step)

    assert ready.state() == before
    assert "PRIVATE KEY" not in noted
    assert "Secret things" not in noted
    assert "content" not in json.loads(ready.ledger.entries[f"file:{ready.root}/conf/admin.conf"])


def test_a_new_host_is_left_without_a_trace(anywhere: Place) -> None:
    place = anywhere
    value = value_of(place)
    before = place.state()

    place.run(certificates(place), values={VALUE: value})
    place.undo(certificates(place))

    assert place.state() == before


CONFIG = "encryption.yaml"


def encrypted(place: Place, **settings: Any) -> EncryptionConfig:
    return EncryptionConfig(f"{place.root}/{CONFIG}", **settings)


@pytest.fixture
def with_key(place: Place) -> Place:
    value = value_of(place, encryption=True)
    place.run(encrypted(place), values={VALUE: value}, ledger=MemoryLedger())
    return place


def test_a_configuration_encrypts_by_the_key_of_the_cluster(anywhere: Place) -> None:
    place = anywhere
    value = value_of(place, encryption=True)
    step = encrypted(place)

    assert place.verdict(step) == Verdict.needed("does not exist", "+")
    place.run(step, values={VALUE: value})

    assert place.read(CONFIG).decode() == (
        "apiVersion: apiserver.config.k8s.io/v1\n"
        "kind: EncryptionConfiguration\n"
        "resources:\n"
        "- resources:\n"
        "  - secrets\n"
        "  providers:\n"
        "  - secretbox:\n"
        "      keys:\n"
        "      - name: key1\n"
        f"        secret: {_written(value['encryptionKey'])}\n"
        "  - identity: {}\n"
    )
    assert mode(place, CONFIG) == 0o600
    assert place.verdict(step).satisfied


def _written(key: str) -> str:
    return key if key[0].isalpha() else f'"{key}"'


def test_the_key_is_told_by_a_configuration_where_its_own_file_is_missing(
    with_key: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = value_of(with_key, encryption=True)["encryptionKey"]
    monkeypatch.setattr("kubexm.common.layout.ENCRYPTION_CONFIG", f"{with_key.root}/{CONFIG}")

    second = minted(with_key, authorities(with_key, encryption=True)).values[VALUE]

    assert second["encryptionKey"] == first


def test_another_provider_goes_first_and_the_old_one_can_still_be_read(with_key: Place) -> None:
    step = encrypted(with_key, provider="aescbc", encrypts=("secrets", "configmaps"))

    assert with_key.verdict(step) == Verdict.needed(
        "encrypts by `secretbox`, want `aescbc`; does not encrypt `configmaps`"
    )
    with_key.run(step, values={VALUE: value_of(with_key, encryption=True)})

    lines = with_key.read(CONFIG).decode().splitlines()
    assert [line.strip() for line in lines if line.startswith("  - ")] == [
        *("- secrets", "- configmaps", "- aescbc:", "- secretbox:", "- identity: {}"),
    ]
    assert with_key.verdict(step).satisfied


def test_what_is_encrypted_stays_listed(with_key: Place) -> None:
    step = encrypted(with_key, encrypts=("configmaps",))

    with_key.run(step, values={VALUE: value_of(with_key, encryption=True)})

    assert "  - configmaps\n  - secrets\n" in with_key.read(CONFIG).decode()
    assert with_key.verdict(step).satisfied


def test_a_configuration_of_another_form_is_left_alone(place: Place) -> None:
    place.write(CONFIG, b"kind: EncryptionConfiguration\nresources: []\n", 0o600)

    with pytest.raises(StepFailed, match=f"{CONFIG}: this is no encryption configuration"):
        place.verdict(encrypted(place))


def test_without_a_key_nothing_can_be_encrypted(place: Place) -> None:
    with pytest.raises(StepFailed, match="keeps no key") as caught:
        place.run(encrypted(place), values={VALUE: value_of(place)})

    assert "`encryption: true`" in caught.value.hint


def test_a_configuration_is_taken_away_again(place: Place) -> None:
    value, before = value_of(place, encryption=True), place.state()
    before = place.state()

    place.run(encrypted(place), values={VALUE: value})
    place.undo(encrypted(place))

    assert place.state() == before


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        ("authorities", {"supplied_keys": {"ca": "hunter2"}}, "`supplied_keys.ca` is no reference"),
        ("authorities", {"supplied": {"ca": "PEM"}}, "`ca` is no authority with a certificate and"),
        ("authorities", {"supplied": {"x": "a"}}, "`x` is no authority"),
        ("certificates", {"host": {}}, "`host` can't be used: Object missing required field"),
        ("certificates", {"host": {}, "directory": "x"}, "`directory` is `x`"),
        ("encryption-config", {"encrypts": []}, "`encrypts` is empty"),
        ("encryption-config", {"provider": "rot13"}, "Invalid enum value 'rot13'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(
    kind: str, params: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        registry.load(kind, params)

    assert "hunter2" not in str(caught.value)


def test_stored_steps_are_read_back_as_they_were(sim: SimPlace) -> None:
    for step in (authorities(sim), certificates(sim), encrypted(sim)):
        assert registry.load(step.kind, step.spec().params) == step
    assert certificates(sim).needs() == (VALUE,)
    assert authorities(sim).provides() == (Key(VALUE, secret=True),)


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    world = World.create(tmp_path / "world")
    yield Walk(world)
    world.close()


def graph() -> list[ExecutionNode]:
    """Two control planes and a worker; the authorities are those of the first that is asked."""
    nodes = [node("authorities", Authorities(algorithm=QUICK), "cp1", "cp2", one_of=True)]
    for name, *roles in (("cp1", "control-plane", "etcd"), ("cp2", *SECOND), ("w1", "worker")):
        step = Certificates.of(holder(*roles, host=name), algorithm=QUICK)
        nodes.append(node(f"certificates-{name}", step, name, after=("authorities",)))
    return nodes


def messages(result: GraphExecutionResult) -> str:
    return msgspec.json.encode(result).decode()


def test_hosts_of_a_cluster_trust_each_other_and_a_second_run_changes_nothing(walk: Walk) -> None:
    first = walk.run(*graph())

    assert {status for status, _ in statuses(first).values()} == {"Success"}
    authority = walk.read("cp1", "/etc/kubernetes/pki/ca.crt")
    for host in ("cp2", "w1"):
        assert walk.read(host, "/etc/kubernetes/pki/ca.crt") == authority
    assert walk.read("cp2", "/etc/kubernetes/pki/etcd/ca.key").startswith(b"-----BEGIN EC PRIVATE")
    assert "PRIVATE KEY" not in messages(first)

    second = walk.run(*graph())

    assert {changed for _, changed in statuses(second).values()} == {False}
    assert not [one for one in walk.records if getattr(one, "values", ())], "nothing was made"


def test_whichever_control_plane_is_left_can_issue_for_the_others(walk: Walk) -> None:
    walk.run(*graph())
    authority = walk.read("cp2", "/etc/kubernetes/pki/ca.crt")
    others = [node("authorities", Authorities(algorithm=QUICK), "cp2", one_of=True)]
    step = Certificates.of(holder("worker", host="w2"), algorithm=QUICK)

    result = walk.run(*others, node("certificates-w2", step, "w2", after=("authorities",)))

    assert statuses(result) == {
        "authorities": ("Success", False),
        "certificates-w2": ("Success", True),
    }
    assert walk.read("w2", "/etc/kubernetes/pki/ca.crt") == authority


def test_a_dry_run_makes_nothing(walk: Walk) -> None:
    result = walk.run(*graph(), dry_run=True)

    assert result.node_results["certificates-cp1"].host_results["cp1"].sign == "+"
    with pytest.raises(FileNotFoundError):
        walk.read("cp1", "/etc/kubernetes/pki/ca.crt")


def test_a_later_run_can_take_all_of_it_away(walk: Walk) -> None:
    walk.run(*graph())

    made = graph()[1:]
    first = node("authorities", Authorities(algorithm=QUICK), "cp1")
    result = walk.run(*map(undone, made), undone(first, *(one.id for one in made)))

    assert result.status == "Success"
    for host in ("cp1", "cp2", "w1"):
        assert "kubernetes" not in walk.ask(host, "ls", "/etc").split()
