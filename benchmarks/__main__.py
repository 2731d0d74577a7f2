"""`python -m benchmarks`: measure, and print what came out.

contest [--quick] [--rounds N] [--works A,B] [--only NAME,…] [--to FILE]   Detent, the floor and the peers, in turns
report FILE                    put the results of a contest into docs/performance.md and its plot
parts [--quick] [NAME …]       single parts against the same without them: guards, life, writer, greedy, anatomy
big [--finished N] [--pending N]   a drain beside millions of finished jobs, against an empty database
move [--jobs N]                a move of a million jobs from SQLite to PostgreSQL that is killed half-way (docs/move.md)
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks import move, parts
from benchmarks.contest.contender import CONTENDERS
from benchmarks.contest.programme import BRIEF, GROUPS, USUAL, WORKS
from benchmarks.contest.results import Results
from benchmarks.contest.rows import ROWS
from benchmarks.contest.run import contest
from benchmarks.contest.works import QUICK, WHOLE, Size
from benchmarks.measure import say
from benchmarks.places import places
from benchmarks.report import publish, verdict


def main(arguments: Sequence[str]) -> int:
    """What the command line asks for."""
    options = _parser().parse_args(arguments)
    # Told to stop, we end the workers and the server that we started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began = time.monotonic()
    match options.command:
        case "contest":
            _contest(options)
        case "big":
            size = replace(WHOLE, finished=options.finished, pending=options.pending)
            _measured(size, works=["filled"], names=["Detent"], to=options.to)
        case "report":
            publish(Results.of([Results.read(file) for file in options.files]))
        case "move":
            with places() as found:
                move.run(found, options.jobs)
        case "parts":
            parts.run(options.names, quick=options.quick)
    say(f"\n{time.monotonic() - began:.0f} s")
    return 0


def _contest(options: argparse.Namespace) -> None:
    size = QUICK if options.quick else WHOLE
    known = sorted({one.name for one in CONTENDERS if not (options.quick and one.is_peer)})
    _measured(
        replace(size, rounds=options.rounds or size.rounds),
        works=options.works or (BRIEF if options.quick else USUAL),
        names=options.only or known,
        to=options.to,
    )


def _measured(size: Size, *, works: Collection[str], names: Collection[str], to: Path | None) -> None:
    def keep(results: Results) -> None:
        if to is not None:
            results.write(to)

    with places() as found:
        results = contest(found, size, works=works, names=names, say=say, keep=keep)
    say(f"\n{verdict(results, [row for row in ROWS if row.ours.work in works])}")


def _parser() -> argparse.ArgumentParser:
    def names(text: str) -> list[str]:
        return [part.strip() for part in text.split(",")]

    def works(text: str) -> list[str]:
        asked = [work for name in names(text) for work in GROUPS.get(name, (name,))]
        if unknown := [work for work in asked if work not in WORKS]:
            raise argparse.ArgumentTypeError(f"no work {unknown[0]!r}; known: {', '.join([*WORKS, *GROUPS])}")
        return asked

    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure what Detent costs.")
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("contest", help="Detent, the floor and the peers at the same work, in turns")
    one.add_argument("--quick", action="store_true", help="less work, one round, no peers")
    one.add_argument("--rounds", type=int, default=0)
    one.add_argument(
        "--works", type=works, help=f"of {', '.join(WORKS)}; {', '.join(GROUPS)} for all that concern them"
    )
    one.add_argument("--only", type=names, help="contenders by name")
    one.add_argument("--to", type=Path, help="keep the results in this file")
    one = commands.add_parser("big", help="a drain beside millions of finished jobs, against one in an empty database")
    one.add_argument("--finished", type=int, default=WHOLE.finished)
    one.add_argument("--pending", type=int, default=WHOLE.pending)
    one.add_argument("--to", type=Path, help="keep the results in this file")
    one = commands.add_parser("move", help="a move of many jobs from SQLite to PostgreSQL that is killed half-way")
    one.add_argument("--jobs", type=int, default=1_000_000)
    one = commands.add_parser("report", help="put results into docs/performance.md and its plot")
    one.add_argument("files", type=Path, nargs="+")
    one = commands.add_parser("parts", help="single parts against the same without them")
    one.add_argument("--quick", action="store_true")
    one.add_argument("names", nargs="*", choices=[*parts.PARTS, []], metavar="NAME")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
