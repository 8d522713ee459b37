"""The same of steps for artifacts, images and certificates."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.resource import made_images
from tests.step.places import SimPlace
from tests.step.test_artifacts import packed
from tests.step.watched import Watched

from kubexm.common.roles import ETCD
from kubexm.pki import kept
from kubexm.pki.kept import Making
from kubexm.pki.names import Names
from kubexm.pki.request import Host as Holder
from kubexm.resource import images
from kubexm.resource.store import Store
from kubexm.runner.host import Host
from kubexm.runtime.store_assets import StoreAssets
from kubexm.sim import Script, WorldSettings
from kubexm.step.artifacts import Installed, MembersInstalled
from kubexm.step.contract import Step
from kubexm.step.images import ImagePresent
from kubexm.step.pki import Authorities, Certificates, EncryptionConfig

IMAGE = "example.org/team/app:1"
STEPS: Mapping[str, Step] = {
    step.kind: step
    for step in (
        Installed("/usr/local/bin/tool", "tool/v1/binary"),
        MembersInstalled("app/v1/archive", {"bin/*": "/usr/local/bin/"}),
        ImagePresent(IMAGE, source="store", arch="amd64"),
        Authorities(algorithm="ECDSA-P256", encryption=True),
        Certificates.of(Holder(Names("n1"), frozenset({ETCD})), algorithm="ECDSA-P256"),
        EncryptionConfig("/etc/encryption.yaml"),
    )
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[SimPlace]:
    ctr = Script(("/usr/local/bin/ctr", "**"))
    made = SimPlace(tmp_path, WorldSettings(scripts=(ctr,)))
    yield made
    made.close()


@pytest.fixture
def assets(tmp_path: Path) -> StoreAssets:
    store = Store(tmp_path / "store")
    store.add(b"a program", name="tool/v1/binary")
    store.add(packed(), name="app/v1/archive")
    images.record(made_images.image(store, IMAGE), store)
    return StoreAssets(store, outside=False)


@pytest.mark.parametrize("sudo", [True, False])
@pytest.mark.parametrize("kind", STEPS)
def test_a_step_does_everything_with_sudo_or_nothing(
    kind: str, sudo: bool, place: SimPlace, assets: StoreAssets
) -> None:
    making = Making(datetime.now(UTC), algorithm="ECDSA-P256", encryption=True)
    values = {"authorities": kept.completed({}, {}, making).value()}
    step: Any = dataclasses.replace(STEPS[kind], sudo=sudo)  # type: ignore[type-var]
    watched = Watched(place.world.connector("there"))
    place.host = Host("there", watched, sudo=not sudo)

    place.wait(step.precheck(place.context(assets=assets)))
    place.run(step, values=values, assets=assets)
    place.undo(step, assets=assets)

    assert watched.asked
    assert [what for what, found in watched.asked if found is not sudo] == []
