"""Programs out of Go modules.

A module of our own requires the one that is wanted, so that exactly the versions are taken that its
project has chosen. What the project replaces by a directory of its own tree is replaced by the
module that is published of it.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from lab.errors import CommandFailed
from lab.software import programs, versions
from lab.software.progress import Step
from lab.software.recipe import GoPart

_SETTINGS = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -buildvcs=false", "GOWORK": "off"}
_ATTEMPTS = 3
"""A module may be too large for the first answer in time."""
_PLUGIN = re.compile(r'^\s*_ "(?P<package>[^"]+)"$', re.MULTILINE)


@cache
def known(module: str) -> list[str]:
    """The releases of a module that can be had, the oldest first."""
    with tempfile.TemporaryDirectory() as nowhere:
        said = programs.run(
            "go", "list", "-m", "-versions", "-json", module, at=Path(nowhere), variables=_SETTINGS
        )
    return versions.releases(json.loads(said).get("Versions", ()))


def build(part: GoPart, version: str, debian: Path, into: Path, step: Step) -> None:
    """Have the programs of a part in a directory."""
    work, made = into / "work", into / "made"
    work.mkdir()
    made.mkdir()
    _write_module(part, version, work)
    packages = tuple(part.programs.values())
    most = len(_fetched(packages, work, step))
    programs.run(
        # What debuggers want would be left out by the linker; so it need not be compiled either.
        *("go", "build", "-v", "-trimpath", "-gcflags=all=-dwarf=false"),
        *("-ldflags", stamp(part, version)),
        *(*_tags(part), "-o", f"{made}/", *packages),
        at=work,
        variables=_SETTINGS | (_c_settings(debian) if part.links_c else {}),
        heard=_counting(step, "packages", most),
    )
    for name, package in part.programs.items():
        (made / _called(package, name)).rename(into / name)
    shutil.rmtree(work)
    made.rmdir()


def module_text(
    part: GoPart, version: str, replaced: Mapping[str, str], go: str, name: str = "software"
) -> str:
    """The `go.mod` of a module that requires those of a part."""
    return "\n".join(
        (
            f"module lab.invalid/{name}",
            f"go {go}",
            *(f"require {module} {version}" for module in part.modules),
            *(f"replace {module} => {other}" for module, other in replaced.items()),
            "",
        )
    )


def main_text(plugins: str, without: tuple[str, ...]) -> str:
    """The program CoreDNS with all plugins of its list but some."""
    packages = [found["package"] for found in _PLUGIN.finditer(plugins)]
    wanted = [package for package in packages if package.rpartition("/")[2] not in without]
    imports = "\n".join(f'\t_ "{package}"' for package in wanted)
    run = '\t"github.com/coredns/coredns/coremain"'
    return f"package main\n\nimport (\n{run}\n{imports}\n)\n\nfunc main() {{ coremain.Run() }}\n"


def stamp(part: GoPart, version: str) -> str:
    """The flags of the linker: nothing for debuggers, no trace of where it was built."""
    values = _values(version)
    stamps = (f"-X {name}={value.format(**values)}" for name, value in part.stamps.items())
    static = ("-extldflags -static",) if part.links_c else ()
    return " ".join(("-s -w -buildid=", *stamps, *static))


def _values(version: str) -> dict[str, str]:
    major, minor, patch = map(str, versions.numbers(version))
    bare = versions.bare(version)
    return {"version": version, "bare": bare, "major": major, "minor": minor, "patch": patch}


def _write_module(part: GoPart, version: str, work: Path) -> None:
    found = json.loads(
        programs.run(
            *("go", "mod", "download", "-json", f"{part.modules[0]}@{version}"),
            at=work,
            variables=_SETTINGS,
        )
    )
    described = json.loads(programs.run("go", "mod", "edit", "-json", found["GoMod"]))
    replaced = dict(_replaced(described, part.staging.format(**_values(version))))
    name = next(iter(part.programs))
    (work / "go.mod").write_text(module_text(part, version, replaced, described["Go"], name))
    if part.without:
        plugins = Path(found["Dir"]) / "core/plugin/zplugin.go"
        (work / "main.go").write_text(main_text(plugins.read_text(), part.without))


def _replaced(described: dict[str, Any], staging: str) -> Iterator[tuple[str, str]]:
    """What others than the project itself have to replace too."""
    for each in described.get("Replace") or ():
        old, new = each["Old"]["Path"], each["New"]
        if not new["Path"].startswith("."):
            yield old, f"{new['Path']} {new['Version']}"
        elif staging:
            yield old, f"{old} {staging}"


def _fetched(packages: tuple[str, ...], work: Path, step: Step) -> list[str]:
    """Have all modules here; the packages that are compiled."""
    heard = _counting(step, "modules")
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            words = ("go", "list", "-deps", *packages)
            return programs.run(*words, at=work, variables=_SETTINGS, heard=heard).split()
        except CommandFailed:
            if attempt == _ATTEMPTS:
                raise
    raise AssertionError


def _tags(part: GoPart) -> tuple[str, ...]:
    return ("-tags", "seccomp,netgo,osusergo") if part.links_c else ()


def _c_settings(debian: Path) -> dict[str, str]:
    """Where libseccomp is: in packages that were unpacked, not installed."""
    descriptions = ":".join(str(path) for path in debian.glob("usr/lib/*/pkgconfig"))
    return {
        "CGO_ENABLED": "1",
        "PKG_CONFIG_LIBDIR": descriptions,
        "PKG_CONFIG_SYSROOT_DIR": str(debian),
    }


def _counting(step: Step, what: str, most: int = 0) -> Callable[[str], None]:
    """Count the lines that name something: a module that is fetched, a package that is compiled."""
    done = 0

    def heard(line: str) -> None:
        nonlocal done
        done += line.startswith("go: downloading ") if what == "modules" else " " not in line
        step.reached(done, what, most)

    return heard


def _called(package: str, name: str) -> str:
    """What `go build` calls a program: the last part of its path that is no version."""
    words = package.split("/")
    if package == ".":
        return name
    return words[-2] if re.fullmatch(r"v\d+", words[-1]) else words[-1]
