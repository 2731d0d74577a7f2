"""P7: the package with one defect after another, each of which its proof must find."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median

from prove.defects import CHEAPEST, DEFECTS, Defect
from prove.defects.trial import Trial, try_defect
from prove.figure import Budget, Tally

__all__ = ["run", "tally_of"]


def run(budget: Budget) -> Tally:
    """Try each defect once, or the cheapest of them. A release tries each with three seeds."""
    names = CHEAPEST if budget.tier == "commit" else tuple(DEFECTS)
    seeds = range(budget.seed, budget.seed + budget.count(commit=1, nightly=1, release=3))
    with ThreadPoolExecutor(budget.processes) as pool:
        trials = [one for seed in seeds for one in pool.map(partial(_try, budget, seed), names) if one is not None]
    tally = tally_of(trials)
    if len(trials) < len(names) * len(seeds):
        tally.notes.append(f"{len(names) * len(seeds) - len(trials)} were not tried, because the time was up")
        # That each is found is what the figure says, except in the tier of a commit.
        tally.stuck += budget.tier != "commit"
    return tally


def tally_of(trials: Iterable[Trial]) -> Tally:
    """Count what came of them. A defect that is not found is wrong, and so is one that does not fit the code."""
    tally = Tally()
    by_proof: dict[str, list[float]] = {}
    for one in trials:
        tally.injected[f"defect in {one.defect.room}"] += 1
        if one.verdict == "found":
            by_proof.setdefault(one.defect.proof.kind, []).append(one.seconds)
        else:
            tally.wrong += 1
            tally.stories.append(str(one))
    for kind, seconds in sorted(by_proof.items()):
        tally.notes.append(f"{len(seconds)} found by {kind}, in {median(seconds):.1f} s each (median)")
    return tally


def _try(budget: Budget, seed: int, name: str) -> Trial | None:
    defect: Defect = DEFECTS[name]
    return None if budget.is_spent else try_defect(defect, seed)
