"""A value that a contender reaches, and a row of the table: a value of ours against another, or against a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from benchmarks.contest.contender import Database
from benchmarks.contest.results import Results
from benchmarks.measure import spread

__all__ = ["LITE", "PG", "Quantity", "Row", "amount"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value that a contender reaches at a work."""

    work: str
    value: str = "per_second"
    contender: str = "Detent"

    def of(self, contender: str) -> Quantity:
        """The same of another."""
        return replace(self, contender=contender)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. Without `against` the value itself has the limit; without `wanted` none has."""

    what: str
    database: Database
    ours: Quantity
    wanted: float | None
    against: Quantity | None = None
    at_most: bool = False
    unit: str = "/s"

    def reached(self, results: Results) -> Sequence[float]:
        """The ratio, or the value, of every round; empty where one side was not run."""
        ours = results.rounds(self.database, self.ours.work, self.ours.contender, self.ours.value)
        if self.against is None:
            return list(ours.values())
        theirs = results.rounds(self.database, self.against.work, self.against.contender, self.against.value)
        return [ours[number] / theirs[number] for number in ours if number in theirs]

    def is_met(self, results: Results) -> bool | None:
        """By the median; None where it was not run, or nothing is wanted."""
        reached = self.reached(results)
        if not reached or self.wanted is None:
            return None
        return median(reached) <= self.wanted if self.at_most else median(reached) >= self.wanted

    def cells(self, results: Results) -> tuple[str, ...]:
        """As the table has it."""
        sign, name = ("≤", "") if self.at_most else ("≥", "")
        if self.against is not None:
            own = self.against.contender == "Detent"
            name = f" × {_NAMES[self.against.work, self.against.value] if own else self.against.contender}"
        if self.wanted is None:
            target = f"beside{name}"
        else:
            target = f"{sign} {self.wanted:g}{name}{'' if self.against else self.unit}"
        reached = self.reached(results)
        shown = spread(reached, "{:.2f}") if reached else "not run"
        met = {True: "met", False: "**missed**", None: ""}[self.is_met(results)]
        return self.what, self.database, target, shown, self._amount(results, self.ours), self._beside(results), met

    def _amount(self, results: Results, quantity: Quantity) -> str:
        found = results.rounds(self.database, quantity.work, quantity.contender, quantity.value)
        return f"{amount(median(found.values()))}{self.unit}" if found else "not run"

    def _beside(self, results: Results) -> str:
        """Everybody else at the same work, best first."""
        of_others = {
            one.contender
            for one in results.samples
            if (one.database, one.work) == (self.database, self.ours.work) and one.contender != "Detent"
        }
        known = {name: Quantity(self.ours.work, self.ours.value, name) for name in of_others}
        rates = {
            name: median(found.values())
            for name, one in known.items()
            if (found := results.rounds(self.database, one.work, name, one.value))
        }
        best_first = sorted(rates, key=lambda name: rates[name], reverse=not self.at_most)
        return ", ".join(f"{name} {amount(rates[name])}" for name in best_first)


def amount(value: float) -> str:
    """Short, and with as many digits as mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


PG: Database = "PostgreSQL"
LITE: Database = "SQLite"

_NAMES = {
    ("callers", "one"): "one caller",
    ("drain", "per_second"): "one process",
    ("steps", "per_second"): "one workflow",
    ("writes", "per_second"): "jobs that write a row",
}
