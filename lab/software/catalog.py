"""The product's own catalog, as far as the lab needs it: it says what has to be made."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lab.errors import LabError
from lab.software import versions

_PLACE = Path(__file__).parents[2] / "src/kubexm/resource/catalog"


@dataclass(frozen=True, slots=True)
class Catalog:
    """What the files of the catalog say together."""

    components: dict[str, Any]
    lines: dict[str, Any]

    def default(self, component: str, kubernetes: str) -> str:
        """The version that goes with a version of Kubernetes."""
        preferred = self._line(kubernetes)["defaults"].get(component)
        return str(preferred or self.components[component]["default"])

    def newest(self, wanted: str) -> str:
        """The version of Kubernetes that is meant by one, by a release line, or by nothing."""
        if not wanted:
            return str(self.components["kubernetes"]["default"])
        plain = f"v{versions.bare(wanted)}"
        if plain in self.lines:
            return str(self.lines[plain]["default"])
        if not versions.is_whole(plain):
            raise LabError(f"there is no Kubernetes `{wanted}`, only: {', '.join(self.lines)}")
        return plain

    def expected(self, kubernetes: str) -> str:
        """The tag of etcd that the kubeadm of a version takes by itself."""
        since = self._line(kubernetes)["expected"]
        place = versions.numbers(kubernetes)
        holds = [version for version in since if versions.numbers(version) <= place]
        return str(since[max(holds, key=versions.numbers)]["etcd"])

    def image(self, component: str, name: str, version: str, **uses: str) -> str:
        """The full name of an image of a component."""
        template = str(self.components[component]["images"][name])
        return template.format(version=version, bare=versions.bare(version), **uses)

    def address(self, component: str, name: str, version: str, arch: str) -> str:
        """Where a file of a component is published."""
        artifact = self.components[component]["artifacts"][name]
        values = {"version": version, "bare": versions.bare(version), "arch": arch}
        return str(artifact["urls"][0].format(file=artifact["file"].format(**values), **values))

    def is_program(self, component: str, name: str) -> bool:
        """Whether a file is run as it is published."""
        return bool(self.components[component]["artifacts"][name]["kind"] == "binary")

    def _line(self, kubernetes: str) -> dict[str, Any]:
        return dict(self.lines[versions.line(kubernetes)])


@cache
def read() -> Catalog:
    """The catalog in the tree that the lab is in."""
    files = [tomllib.loads(path.read_text()) for path in sorted(_PLACE.glob("*.toml"))]
    components = {name: each for file in files for name, each in _table(file, "components")}
    return Catalog(components, dict(pair for file in files for pair in _table(file, "kubernetes")))


def _table(file: dict[str, Any], name: str) -> Any:
    return file.get(name, {}).items()
