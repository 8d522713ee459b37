"""Names that certificates are valid for: complete, in order, each once, and none that is none."""

import random
from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pki.samples import NAMES

from kubexm.errors import InvalidInput
from kubexm.pki import names
from kubexm.pki.names import AlternativeNames, Names

addresses = st.ip_addresses().map(str)
dns_names = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?(\.[a-z]{1,5}){0,3}", fullmatch=True)


def test_the_api_is_known_by_every_way_that_leads_to_it() -> None:
    assert names.apiserver(NAMES) == AlternativeNames(
        dns=(
            "api.example.org",
            "cp1",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
            "lb.example",
            "localhost",
        ),
        addresses=(
            "10.0.0.11",
            "10.0.0.100",
            "10.96.0.1",
            "127.0.0.1",
            "192.0.2.7",
            "::1",
            "fd00::11",
            "fd00:1::1",
        ),
    )


def test_a_member_of_etcd_is_known_by_its_own_names_only() -> None:
    assert names.etcd(NAMES) == AlternativeNames(
        dns=("cp1", "localhost"), addresses=("10.0.0.11", "127.0.0.1", "::1", "fd00::11")
    )


def test_the_domain_of_the_cluster_is_part_of_the_service_name() -> None:
    found = names.apiserver(Names("cp1", domain="k8s.internal"))

    assert "kubernetes.default.svc.k8s.internal" in found.dns
    assert "kubernetes.default.svc.cluster.local" not in found.dns


@given(st.lists(addresses | dns_names, max_size=8), st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_changes_the_names(
    texts: list[str], chance: random.Random
) -> None:
    mixed = [*texts, *texts]
    chance.shuffle(mixed)

    found = names.settled(mixed)

    assert found == names.settled(texts)
    assert len({*found.dns}) == len(found.dns)
    assert {*found.dns, *found.addresses} == {*texts}


@given(
    st.tuples(st.ip_addresses(v=4), st.integers(1, 31))
    | st.tuples(st.ip_addresses(v=6), st.integers(1, 127))
)
def test_the_first_service_address_follows_the_beginning_of_its_range(
    drawn: tuple[object, int],
) -> None:
    network = ip_network(f"{drawn[0]}/{drawn[1]}", strict=False)

    (found,) = names.settled((), [f"{drawn[0]}/{drawn[1]}"]).addresses

    assert int(ip_address(found)) == int(network.network_address) + 1


@pytest.mark.parametrize(
    ("written", "meant"),
    [("CP1.Example", "cp1.example"), ("lb.example.", "lb.example"), ("*.example", "*.example")],
)
def test_names_are_written_in_one_way(written: str, meant: str) -> None:
    assert names.settled([written]).dns == (meant,)


def test_an_address_in_another_form_is_the_same_address() -> None:
    assert names.settled(["FD00:0:0::11", "fd00::11"]).addresses == ("fd00::11",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "10.0.0.1:6443",
        "[fd00::1]",
        "fe80::1%eth0",
        "https://lb",
        "a b",
        "bücher.example",
        "-a",
        "a..b",
        "a.*.b",
        "a\n",
        "10.0.0.300",
        "10.0.1",
        "x" * 64,
        ".".join(["abcdefgh"] * 30),
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        names.settled([text])

    (problem,) = caught.value.problems
    assert f"`{text}`" in problem.message
    assert problem.hint


@pytest.mark.parametrize("text", ["", "10.96.0.1/32", "fd00::/128", "10.96.0.0/33", "services"])
def test_what_is_no_range_of_services_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="want a range"):
        names.settled((), [text])


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = Names("a b", addresses=("10.0.0.1:22",), services=("10.96.0.0",), extra=("_",))

    with pytest.raises(InvalidInput) as caught:
        names.apiserver(wrong)

    assert len(caught.value.problems) == 4
