"""Defects of workflows that the simulation must find."""

from __future__ import annotations

from prove.defects.defect import Defect, Edit
from prove.defects.proofs import lives, simulation, tests

__all__ = ["WORKFLOWS"]

_STEPS = "store/workflows/sqlite_steps.py"
_WAITS = "store/workflows/sqlite_waits.py"
_SIGNALS = "store/workflows/sqlite_signals.py"
_TRIGGERS = "store/workflows/sqlite_triggers.sql"

WORKFLOWS = (
    Defect(
        "signals",
        "workflows",
        "a signal that is sent again under its key is another signal",
        (
            Edit(
                "store/sqlite/schema/0001_tables.sql",
                "CREATE UNIQUE INDEX detent_workflow_signal_one_per_dedupe",
                "CREATE INDEX detent_workflow_signal_one_per_dedupe",
            ),
            Edit("store/workflows/sqlite_guards.sql", "OR (NEW.dedupe IS NOT NULL AND EXISTS (", "OR (0 AND EXISTS ("),
            Edit(_SIGNALS, "        if item.dedupe is not None:\n", "        if False:\n"),
        ),
        simulation(),
    ),
    Defect(
        "step under an expired lease",
        "workflows",
        "a single step is recorded although the lease has expired",
        (Edit(_STEPS, "AND l.expires_at > :now AND w.version > 0", "AND w.version > 0"),),
        simulation(),
    ),
    Defect(
        "effect without its step",
        "workflows",
        "a step in a transaction is not recorded in it",
        (Edit("store/sqlite/commit_block.py", "self._last(lambda: self._write_last(self._verbs(executor)))", "pass"),),
        simulation(),
    ),
    Defect(
        "step after its effect",
        "workflows",
        "a step in a transaction is recorded in another transaction than its effect",
        (
            Edit(
                "store/sqlite/commit_block.py",
                "self._last(lambda: self._write_last(self._verbs(executor)))",
                'executor._cursor.execute("COMMIT")\n'
                '        executor._cursor.execute("BEGIN IMMEDIATE")\n'
                "        self._last(lambda: self._write_last(self._verbs(executor)))",
            ),
        ),
        lives("sqlite", "transactions"),
    ),
    Defect(
        "lost wake-up",
        "workflows",
        "a workflow that parks does not look for what arrived meanwhile",
        (
            Edit(
                _WAITS,
                "arrived = self._arrival(item.job_id, holder.generation or 1, item.on) is not None",
                "arrived = False",
            ),
        ),
        tests(
            "contract/workflows/test_workflow_park.py::test_what_has_arrived_wakes_it_at_once[sqlite]",
        ),
    ),
    Defect(
        "children that wake nobody",
        "workflows",
        "the last child does not wake its parent",
        (
            Edit(
                _TRIGGERS,
                "WHERE NEW.finished_at IS NOT NULL AND q.job_id = NEW.parent_id",
                "WHERE 0 AND q.job_id = NEW.parent_id",
            ),
        ),
        simulation(),
    ),
    Defect(
        "steps done again",
        "workflows",
        "a workflow that begins again does not get its steps",
        (
            Edit(
                _STEPS,
                "            steps, following = self._steps(job_id",
                "            steps, following = [], None\n            self._steps(job_id",
            ),
        ),
        simulation(),
    ),
    Defect(
        "children twice",
        "workflows",
        "children that were spawned before are spawned again",
        (
            Edit("store/workflows/sqlite_children.py", "if self._recorded([place]):", "if False:"),
            Edit("store/workflows/sqlite_children.py", "if job_id not in there", "if True"),
        ),
        tests(
            "contract/workflows/test_workflow_spawn.py::test_a_step_on_record_is_answered_and_nothing_is_enqueued[sqlite]"
        ),
    ),
    Defect(
        "signal taken twice",
        "workflows",
        "a signal that a step has taken is still unread",
        (
            Edit(
                _TRIGGERS,
                "DELETE FROM detent_workflow_unread WHERE job_id = NEW.job_id AND name = NEW.signal_name "
                "AND seq = NEW.signal_seq;",
                "SELECT 1;",
            ),
        ),
        tests("contract/workflows/test_wait_look.py::test_two_signals_two_waits[sqlite]"),
    ),
)
