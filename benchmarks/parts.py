"""Single parts of Detent, against the floor or against the same without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks import greedy, guards, life, writer
from benchmarks.measure import Line, say, table
from benchmarks.places import Places, places

__all__ = ["PARTS", "run"]

HEAD = ("what", "ratio", "wanted", "ours a second", "against")
COMPARED: dict[str, tuple[str, Callable[[Places, bool], list[Line]]]] = {
    "guards": ("With the guards, against the same without them (one minus the ratio is their share)", guards.run),
    "life": ("The life of a job in bare verbs, against the floor", life.run),
    "writer": ("Enqueues of one job each through the writer", writer.run),
}
PARTS = (*COMPARED, "greedy")


def run(names: Sequence[str], *, quick: bool) -> None:
    """Whatever is named, or everything. Ratios are medians of interleaved repetitions, with the least and the most."""
    with places() as found:
        for name in names or PARTS:
            if name == "greedy":
                say(f"\n## SQLite between processes\n\n{table(greedy.HEAD, greedy.run(found, quick))}")
            else:
                title, compared = COMPARED[name]
                say(f"\n## {title}\n\n{table(HEAD, [line.cells() for line in compared(found, quick)])}")
