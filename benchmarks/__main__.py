"""`python -m benchmarks [--quick] [guards] [life] [writer] [greedy]`: measure, and print what came out."""

from __future__ import annotations

import platform
import sqlite3
import sys
import time
from collections.abc import Sequence

import psycopg

from benchmarks import greedy, guards, life, writer
from benchmarks.measure import Line, table
from benchmarks.places import places

HEAD = ("what", "ratio", "wanted", "ours a second", "against")
COMPARED = {
    "guards": ("With the guards, against the same without them (one minus the ratio is their share)", guards.run),
    "life": ("The life of a job in bare verbs, against the floor", life.run),
    "writer": ("Enqueues of one job each through the writer", writer.run),
}


def main(arguments: Sequence[str]) -> int:
    """Whatever is named, or everything. Ratios are medians of interleaved repetitions, with the least and the most."""
    quick = "--quick" in arguments
    chosen = [argument for argument in arguments if argument != "--quick"]
    names = [*COMPARED, "greedy"]
    if unknown := sorted(set(chosen) - set(names)):
        sys.stderr.write(f"{', '.join(unknown)}: no such measurement; there are {', '.join(names)}\n")
        return 2
    began = time.monotonic()
    with places() as found:
        with psycopg.connect(found.cluster.url) as connection:
            version = connection.info.server_version // 10_000
        say(f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, PostgreSQL {version}, fsync on")
        for name, (title, run) in COMPARED.items():
            if name in (chosen or names):
                lines: list[Line] = run(found, quick)
                say(f"\n## {title}\n\n{table(HEAD, [line.cells() for line in lines])}")
        if "greedy" in (chosen or names):
            say(f"\n## SQLite between processes\n\n{table(greedy.HEAD, greedy.run(found, quick))}")
    say(f"\n{time.monotonic() - began:.0f} s")
    return 0


def say(text: str) -> None:
    """At once, since a measurement takes its time."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
