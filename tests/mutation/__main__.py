"""Play mutants of the plans of clusters: `python -m tests.mutation [--every N] [--jobs N] [FILE…]`.

It fails if too many survive, or one without a reason.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator

from tests.mutation.mutants import Mutant
from tests.mutation.plays import ENOUGH, PLAYS, Play, some
from tests.mutation.stage import Verdict
from tests.mutation.survivors import reason

SURVIVED = "nothing"


def main() -> int:
    arguments = _parsed()
    wanted = [play for play in PLAYS if not arguments.files or play.name in arguments.files]
    total: Counter[str] = Counter()
    unknown = 0
    for play in wanted:
        began = time.monotonic()
        verdicts = list(_judged(play, every=arguments.every, jobs=arguments.jobs))
        counts = Counter(verdict.caught or SURVIVED for verdict in verdicts)
        print(f"{play.name}: {_summed(counts)}, {time.monotonic() - began:.0f} s")
        survived = [verdict.mutant for verdict in verdicts if not verdict.caught]
        for line in sorted(_told(play, mutant) for mutant in survived):
            print(f"    {line}")
        sys.stdout.flush()
        unknown += sum(reason(play.name, mutant) is None for mutant in survived)
        total += counts
    print(f"all: {_summed(total)}")
    return int(unknown > 0 or total[SURVIVED] > total.total() * (1 - ENOUGH))


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.mutation", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="play one of so many")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    parser.add_argument("files", nargs="*", help="names of cluster files")
    arguments = parser.parse_args()
    known = [play.name for play in PLAYS]
    if unknown := [name for name in arguments.files if name not in known]:
        parser.error(f"there is no play of `{unknown[0]}`; there are {', '.join(known)}")
    return arguments


def _judged(play: Play, *, every: int, jobs: int) -> Iterator[Verdict]:
    stage = play.stage()
    chosen = some(play, stage.mutants(), every)
    if jobs == 1:
        yield from map(stage.judge, chosen)
        return
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        yield from pool.imap_unordered(stage.judge, chosen, chunksize=4)


def _summed(counts: Counter[str]) -> str:
    played = counts.total()
    caught = played - counts[SURVIVED]
    by = ", ".join(f"{count} by {what}" for what, count in sorted(counts.items()))
    return f"{caught} of {played} caught ({caught / played:.1%}): {by}"


def _told(play: Play, mutant: Mutant) -> str:
    found = reason(play.name, mutant)
    return f"{found.why if found else 'NOT KNOWN'}: {mutant}"


if __name__ == "__main__":
    sys.exit(main())
