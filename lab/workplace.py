"""What a command finds that is run in the lab's network: programs, and places that go with it.

Hosts go with their lab, so what kubexm knows of them does too: what is kept elsewhere would tell
of clusters that nobody can reach any more.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from lab.site import Site


def variables(site: Site, given: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command; who names a home of kubexm gets that one."""
    first = (str(Path(sys.executable).parent), str(programs(site)))
    return {
        "KUBEXM_HOME": str(site.path / "kubexm"),
        **given,
        "KUBECONFIG": str(site.path / "kubeconfig"),
        "KUBECACHEDIR": str(site.path / "kubectl-cache"),
        "PATH": os.pathsep.join((*first, given.get("PATH", os.defpath))),
    }


def programs(site: Site) -> Path:
    """Where programs lie that come with a cluster, such as kubectl."""
    return site.path / "bin"


def bundles(site: Site) -> Path:
    """Where the software of a cluster is found under short names."""
    return site.path / "software"


def furnish(site: Site, software: Path, kubectl: Path) -> None:
    """Have the software at hand, and kubectl of it."""
    for name in ("catalog.toml", "bundle.tar.zst"):
        _link(bundles(site) / name, software / name)
    _link(programs(site) / "kubectl", kubectl)


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
