"""The copies at the beginning of a record that was rewound or forked, and from what chance follows while they are
replayed."""

from __future__ import annotations

from bisect import bisect_right

from detent.model.workflow_records import WorkflowHistory

__all__ = ["CopiedSteps"]


class CopiedSteps:
    """Copies that the function has not come to yet, by the record in which the steps were recorded first.

    `ctx.random` and `ctx.uuid` decided which steps those were and what they did. So up to the last copy of a record
    they follow from its seed, and after that from the next one. A step that is repeated gets other values than
    before."""

    def __init__(self) -> None:
        self._limits: list[int] = []
        self._seeds: list[str] = []
        self._left: list[set[str]] = []

    def load(self, page: WorkflowHistory) -> None:
        """Take over a page of the record."""
        if page.seeds is None:
            return
        if not self._seeds:
            for line in page.seeds.splitlines():
                limit, _, seed = line.partition(" ")
                # A later copy may have ended before an earlier one did.
                self._limits.append(max([int(limit), *self._limits]))
                self._seeds.append(seed)
                self._left.append(set())
        for row in page.steps:
            place = bisect_right(self._limits, row.seq)
            if row.attempt == 0 and "~" not in row.path and place < len(self._left):
                self._left[place].add(row.path)

    def replayed(self, path: str) -> None:
        """Note that the function has come to a copy."""
        for left in self._left:
            left.discard(path)

    @property
    def seed(self) -> str | None:
        """The seed of the first record of which copies are left; None if there are none."""
        return next((seed for seed, left in zip(self._seeds, self._left, strict=True) if left), None)
