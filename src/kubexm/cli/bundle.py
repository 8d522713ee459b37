"""Commands on bundles: all that a cluster needs in one file."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from kubexm.app import bundles
from kubexm.app.bills import BillParams, granted
from kubexm.app.bundles import BuildParams, PushParams
from kubexm.cli import fetching
from kubexm.cli.catalog import Architectures, Overlays
from kubexm.cli.config import ClusterFile
from kubexm.cli.flags import LiteralSecrets, Output
from kubexm.cli.leaving import CANCELLED
from kubexm.cli.messages import mention, warn
from kubexm.cli.output import document, say, table
from kubexm.common.counting import counted
from kubexm.common.paths import Home
from kubexm.errors import Problem
from kubexm.resource import images
from kubexm.resource.bundle_changes import Difference
from kubexm.resource.bundle_manifest import Manifest
from kubexm.resource.bundle_push import Pushed

SHOWN = 20
"""Of so many damaged files people are told; a document has all."""
BundleFile = Annotated[Path, Parameter(metavar="FILE", help="The bundle.")]


def build(
    *,
    file: Annotated[
        Path | None,
        Parameter(name=["--file", "-f"], help="The cluster file that the bundle is for."),
    ] = None,
    kubernetes: Annotated[
        str | None,
        Parameter(metavar="VERSION", help="In place of a file: a usual cluster of this version."),
    ] = None,
    output: Annotated[
        Path, Parameter(name=["--output", "-o"], metavar="FILE", help="The bundle to write.")
    ],
    arch: Architectures = (),
    catalog: Overlays = (),
    images: Annotated[
        tuple[Path, ...],
        Parameter(
            name="--images",
            negative=(),
            metavar="PATH",
            help="An archive of images, a layout, or a directory of archives: they are taken in"
            " place of registries, and all of them are put into the bundle. Repeatable.",
        ),
    ] = (),
    allow_literal_secrets: LiteralSecrets = False,
) -> int:
    """Fetch all that a cluster needs, and write it into one file."""
    wanted = BillParams(
        file=file,
        kubernetes=kubernetes,
        architectures=arch,
        catalogs=catalog,
        allow_literal_secrets=allow_literal_secrets,
    )
    mention(granted(wanted))
    params = BuildParams(wanted, output, images)
    home, secrets = Home.from_environment(), fetching.vault()
    built = fetching.run(lambda progress: bundles.build(params, home, secrets, progress))
    if built is None:
        return CANCELLED
    warn(built.warnings)
    say(f"wrote {built.path}: {_counts(built.manifest)}, {size(built.size)} packed")
    return 0


def verify(file: BundleFile, /, *, output: Output = "text") -> int:
    """Read all of a bundle and compare it with its checksums."""
    damages = fetching.run(lambda progress: bundles.verify(file, progress))
    if damages is None:
        return CANCELLED
    if output != "text":
        document({"bundle": str(file), "damages": damages}, output)
    elif damages:
        for damage in damages[:SHOWN]:
            say(f"✗ {damage.entry}: {damage}")
        more = f", {len(damages) - SHOWN:,} not shown" if len(damages) > SHOWN else ""
        say(f"{file} is damaged: {counted(len(damages), 'file')} of it{more}")
    else:
        say(f"{file} is sound: {_counts(bundles.show(file))}")
    return 1 if damages else 0


def show(file: BundleFile, /, *, output: Output = "text") -> int:
    """What is in a bundle."""
    manifest = bundles.show(file)
    if output != "text":
        document(manifest, output)
        return 0
    kubernetes, machines = ", ".join(manifest.kubernetes), ", ".join(manifest.architectures)
    rows = table(("KIND", "NAME", "VERSION", "ARCH", "SIZE"), [*_rows(manifest)])
    say(f"Kubernetes {kubernetes} for {machines}\n\n{rows}\n\n{_counts(manifest)}")
    return 0


def diff(
    old: Annotated[Path, Parameter(metavar="OLD", help="A bundle.")],
    new: Annotated[Path, Parameter(metavar="NEW", help="Another one.")],
    /,
    *,
    output: Output = "text",
) -> int:
    """In what two bundles differ."""
    found = bundles.diff(old, new)
    if output != "text":
        document([{"sign": each.sign, **msgspec.to_builtins(each)} for each in found], output)
    elif found:
        say(table(("", "KIND", "NAME", "VERSION"), [*map(_changed, found)]))
    else:
        say("the same is in both")
    return 0


def check(
    bundle: BundleFile,
    /,
    *,
    file: ClusterFile,
    arch: Architectures = (),
    catalog: Overlays = (),
    allow_literal_secrets: LiteralSecrets = False,
    output: Output = "text",
) -> int:
    """Whether a bundle has all that a cluster needs."""
    wanted = BillParams(
        file=file,
        architectures=arch,
        catalogs=catalog,
        allow_literal_secrets=allow_literal_secrets,
    )
    missing = bundles.check(bundle, wanted)
    mention(granted(wanted))
    warn(bundles.notes(wanted))
    if output != "text":
        document({"bundle": str(bundle), "missing": missing}, output)
    elif missing:
        for problem in missing:
            say(f"✗ {problem}")
        say(f"{bundle} lacks {counted(len(missing), 'thing')} that {file} needs")
        say(f"hint: build another one: {_as_built(wanted)} -o FILE")
    else:
        say(f"{bundle} has all that {file} needs, by what it says of itself")
        say(f"hint: see that it is whole: kubexm bundle verify {bundle}")
    return 1 if missing else 0


def push(
    bundle: BundleFile,
    registry: Annotated[
        str, Parameter(help="The registry, with a folder of it if you like: mine.lan:5000/kube.")
    ],
    /,
    *,
    plain_http: Annotated[
        bool, Parameter(negative=(), help="Speak to the registry without TLS.")
    ] = False,
    ca: Annotated[
        Path | None, Parameter(metavar="FILE", help="Certificates of the registry's authority.")
    ] = None,
    username: Annotated[str, Parameter(help="Who we are to the registry.")] = "",
    password_ref: Annotated[
        str,
        Parameter(
            metavar="REFERENCE",
            help="Where the password is: env://NAME, file:///PATH or prompt://NAME.",
        ),
    ] = "",
    output: Output = "text",
) -> int:
    """Bring the images of a bundle into a registry, under the names that clusters pull them by."""
    params = PushParams(
        bundle=bundle,
        registry=registry,
        plain_http=plain_http,
        ca=ca,
        username=username,
        password=password_ref,
    )
    home, secrets = Home.from_environment(), fetching.vault()
    pushed = fetching.run(lambda progress: bundles.push(params, home, secrets, progress))
    if pushed is None:
        return CANCELLED
    warn(_not_as_named(pushed))
    if output != "text":
        document(pushed, output)
        return 0
    new = [each for each in pushed if not each.was_there]
    for each in new:
        say(f"pushed {each.pushed_as}")
    say(f"{counted(len(new), 'image')} pushed, {len(pushed) - len(new):,} were there")
    return 0


def size(number: int) -> str:
    """Bytes as people read them."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if number >= 1 << power:
            return f"{number / (1 << power):,.1f} {unit}"
    return f"{number} B"


def _counts(manifest: Manifest) -> str:
    charts = sum(key.startswith("chart/") for key in manifest.artifacts)
    parts = [
        counted(len(manifest.artifacts) - charts, "file"),
        counted(len(manifest.images), "image"),
        *([counted(charts, "chart")] if charts else []),
    ]
    return f"{', '.join(parts)}, {size(manifest.size)}"


def _as_built(wanted: BillParams) -> str:
    """The command that builds what a check wants."""
    words = ["kubexm", "bundle", "build", "-f", str(wanted.file)]
    words += [word for path in wanted.catalogs for word in ("--catalog", str(path))]
    words += [word for arch in wanted.architectures for word in ("--arch", arch)]
    if wanted.allow_literal_secrets:
        words.append("--allow-literal-secrets")
    return shlex.join(words)


def _not_as_named(pushed: Iterable[Pushed]) -> Iterator[Problem]:
    for each in pushed:
        if each.not_as:
            message = f"the registry does not have `{each.not_as}`"
            reason = "the bundle has this image for some of its architectures, so its digest is"
            hint = "name it by its tag, or push it there from its own registry"
            yield Problem(f"{message}: {reason} another, `{each.pushed_as}`", hint=hint)


def _rows(manifest: Manifest) -> Iterator[tuple[str, ...]]:
    for key, file in manifest.artifacts.items():
        first, _, rest = key.partition("/")
        if first == "chart":
            name, _, version = rest.rpartition("/")
            yield "chart", name, version or "newest", "", size(file.size)
        else:
            version, name, *arch = rest.split("/")
            yield "file", f"{first} {name}", version, "".join(arch), size(file.size)
    for text, image in manifest.images.items():
        pulled = images.parse(text)
        taken = sum(manifest.blobs[digest] for digest in image.blobs)
        where = f"{pulled.registry}/{pulled.repository}"
        yield "image", where, pulled.wanted, " ".join(image.architectures), size(taken)


def _changed(found: Difference) -> tuple[str, ...]:
    before, after = ", ".join(found.before), ", ".join(found.after)
    both = f"{before} -> {after}" if before != after else f"{before}, another content"
    return found.sign, found.kind, found.name, both if before and after else before or after
