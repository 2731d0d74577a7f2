"""Single parts of Detent, against the floor or against the same without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks import anatomy, greedy, guards, life, writer
from benchmarks.measure import Line, say, table
from benchmarks.places import Places, places

__all__ = ["PARTS", "run"]

HEAD = ("what", "ratio", "wanted", "ours a second", "against")
COMPARED: dict[str, tuple[str, Callable[[Places, bool], list[Line]]]] = {
    "guards": ("With the guards, against the same without them (one minus the ratio is their share)", guards.run),
    "life": ("The life of a job in bare verbs, against the floor", life.run),
    "writer": ("Enqueues of one job each through the writer", writer.run),
}
TOLD: dict[str, tuple[str, Sequence[str], Callable[[Places, bool], Sequence[Sequence[str]]]]] = {
    "greedy": ("SQLite between processes", greedy.HEAD, greedy.run),
    "anatomy": ("Where the time of a job goes", anatomy.HEAD, anatomy.run),
}
PARTS = (*COMPARED, *TOLD)


def run(names: Sequence[str], *, quick: bool) -> None:
    """Whatever is named, or everything. Ratios are medians of interleaved repetitions, with the least and the most."""
    with places() as found:
        for name in names or PARTS:
            if name in TOLD:
                title, head, told = TOLD[name]
                say(f"\n## {title}\n\n{table(head, told(found, quick))}")
            else:
                title, compared = COMPARED[name]
                say(f"\n## {title}\n\n{table(HEAD, [line.cells() for line in compared(found, quick)])}")
