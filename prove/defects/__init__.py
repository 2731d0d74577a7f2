"""Seeded defects: the proofs are proven by what they find.

Each is a small change of the package, in a copy of it, and names the proof that has to find it.
"""

from __future__ import annotations

from prove.defects import attacked, http, lost_answers, restarts, runs, store, worker, workflows, zombies
from prove.defects.defect import Defect, Edit, PatchError, planted
from prove.defects.store_guards import MUTANTS
from prove.defects.workflow_guards import WORKFLOW_MUTANTS

__all__ = ["CHEAPEST", "DEFECTS", "Defect", "Edit", "PatchError", "planted"]

_ALL = (
    *store.ORDERS,
    *store.SIMULATED,
    *store.KILLED,
    *worker.WORKER,
    *worker.SERVICES,
    *workflows.WORKFLOWS,
    *runs.RUNS,
    *http.HTTP,
    *lost_answers.LOST_ANSWERS,
    *restarts.RESTARTS,
    *zombies.ZOMBIES,
    *attacked.ATTACKED,
    *(mutant.defect for mutant in (*MUTANTS, *WORKFLOW_MUTANTS)),
)
DEFECTS: dict[str, Defect] = {defect.name: defect for defect in _ALL}
"""By name."""
CHEAPEST = (
    *("claimed and still ready", "expired and claimed", "abort after the commit", "one attempt too many"),
    *("cancel after the commit", "dead and alive"),
    *("forgotten key", "effect without its step", "repeated at any price", "step under an expired lease"),
)
"""Ten that are found within a second or two."""
