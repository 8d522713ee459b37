"""The command `software` of the lab."""

from __future__ import annotations

import argparse
from pathlib import Path

from lab.software import making, recipe
from lab.software.making import Wish

TEXT = "make all that a cluster is made of, without any upstream site"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubernetes",
        default="",
        metavar="VERSION",
        help="v1.36.3, or v1.36 for the newest of it; by default the newest there is",
    )
    parser.add_argument(
        "--with",
        dest="extra",
        nargs="+",
        choices=recipe.OPTIONAL,
        default=(),
        metavar="NAME",
        help=f"what is not made by default: {', '.join(recipe.OPTIONAL)}",
    )
    parser.add_argument(
        "--upstream",
        action="store_true",
        default=making.from_upstream(),
        help="fetch it from the sites of its projects (or KUBEXM_LAB_UPSTREAM=1)",
    )
    parser.add_argument(
        "--to",
        type=lambda text: Path(text).absolute(),
        metavar="DIRECTORY",
        help="where it goes; by default into the cache of the lab",
    )


def run(options: argparse.Namespace) -> int:
    """Make it; the exit code."""
    extra = tuple(sorted(set(options.extra)))
    wish = Wish(options.kubernetes, extra, options.upstream, options.to, renews=True)
    making.make(wish, lambda line: print(line, flush=True))
    return 0
