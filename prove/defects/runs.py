"""Defects of batches, pipelines and schedules, and the tests that must find them."""

from __future__ import annotations

from prove.defects.defect import Defect, Edit, Room
from prove.defects.proofs import tests

__all__ = ["RUNS"]

_BATCHES = "store/batches/sqlite.py"
_SHARED = "store/batches/shared_verbs.py"
_PIPELINES = "store/pipelines/sqlite.py"
_CONSOLIDATION = "store/pipelines/sqlite_consolidation.py"
_SCHEDULES = "store/schedules/sqlite.py"


def _defect(name: str, room: Room, what: str, edits: Edit | tuple[Edit, ...], found_by: str) -> Defect:
    folder = {"batch": "batches", "pipeline": "pipelines", "schedules": "schedules"}[room]
    several = edits if isinstance(edits, tuple) else (edits,)
    return Defect(name, room, what, several, tests(f"contract/{folder}/{found_by}[sqlite]"))


RUNS = (
    _defect(
        "portion twice",
        "batch",
        "a step whose answer was lost is made again",
        Edit(
            _SHARED,
            "if action.done_at is not None or action.cursor == to_cursor > from_cursor:",
            "if action.done_at is not None:",
        ),
        "test_batch_step.py::test_a_step_whose_answer_was_lost",
    ),
    _defect(
        "step of a stranger",
        "batch",
        "a worker that lost its lease goes on with a run",
        Edit(
            _BATCHES,
            "lost = self._lost(self._jobs([job_id]).get(job_id), job_id, attempt, self._now())",
            "lost = None",
        ),
        "test_batch_step.py::test_only_by_the_holder",
    ),
    _defect(
        "preview replaced",
        "batch",
        "a preview that is on record is replaced",
        Edit(_BATCHES, "WHERE run_id = ? AND n = ? AND previewed_at IS NULL", "WHERE run_id = ? AND n = ?"),
        "test_target_previewed.py::test_what_is_on_record_stays",
    ),
    _defect(
        "stopped twice",
        "batch",
        "a run that was stopped is stopped again for another reason",
        Edit(_BATCHES, "if run is None or run.critical is not None:", "if run is None:"),
        "test_batch_stop.py::test_stopped_once",
    ),
    _defect(
        "targets without the run",
        "batch",
        "a run does not end its preview with its last target",
        Edit(
            _BATCHES,
            'change_many(_PREVIEWED, rows)\n        self._db.change(_ALL_PREVIEWED, {"id": run_id, "now": now})',
            "change_many(_PREVIEWED, rows)",
        ),
        "test_target_previewed.py::test_a_complete_preview",
    ),
    _defect(
        "late page",
        "pipeline",
        "a worker that lost its lease stores a page",
        Edit(
            _PIPELINES,
            "if (lost := self._lost(job, item.job_id, item.attempt, now)) or job is None:",
            "if (lost := None) or job is None:",
        ),
        "test_page_store.py::test_a_late_page_is_refused",
    ),
    _defect(
        "page twice",
        "pipeline",
        "a page is stored although the offset has moved on",
        Edit(_PIPELINES, "if next_offset != item.offset or last_page or state not in", "if state not in"),
        "test_page_store.py::test_a_page_that_repeats_changes_nothing",
    ),
    _defect(
        "watermark too late",
        "pipeline",
        "the watermark is the end of a run, so what changed meanwhile is never fetched",
        Edit(_CONSOLIDATION, 'stands = (run["captured_at"], run_id', "stands = (at, run_id"),
        "test_pipeline_complete.py::test_the_watermark_is_the_time_before_the_first_fetch",
    ),
    _defect(
        "complete with records left",
        "pipeline",
        "a run is completed while records wait to be consolidated, and by a job that does not end it",
        (
            Edit(
                _CONSOLIDATION, 'if self._db.rows(_LEFT, {"run": run_id, "after": run["cut_key"]})[0][0]:', "if False:"
            ),
            Edit(
                _CONSOLIDATION,
                'mine = run is not None and (run["finisher_job_id"], run["finisher_attempt"]) == (job_id, attempt)',
                "mine = True",
            ),
        ),
        "test_pipeline_complete.py::test_not_while_anything_is_left_and_not_by_anybody",
    ),
    _defect(
        "two runs of one watermark",
        "pipeline",
        "a run starts while another one of its watermark is going on",
        Edit(_PIPELINES, "if active := self._db.rows(_ACTIVE, (item.tenant, item.watermark)):", "if active := []:"),
        "test_pipeline_start.py::test_one_run_of_a_watermark_at_a_time",
    ),
    _defect(
        "portion of a zombie",
        "pipeline",
        "a worker that lost its lease ends a portion that another worker has taken",
        (
            Edit(
                _CONSOLIDATION,
                "if lost := self._lost(self._jobs([job_id]).get(job_id), job_id, attempt, now):",
                "if lost := None:",
            ),
            Edit(_CONSOLIDATION, "AND done_at IS NULL AND job_id = :job AND attempt = :attempt", "AND done_at IS NULL"),
        ),
        "test_portion_done.py::test_not_by_a_zombie",
    ),
    _defect(
        "old tick",
        "schedules",
        "a scheduler that has seen an old tick fires it",
        Edit(_SCHEDULES, "AND next_at = :expected AND paused_at", "AND :expected > 0 AND paused_at"),
        "test_schedule_fire.py::test_who_believes_an_old_tick_gets_nothing",
    ),
    _defect(
        "tick twice",
        "schedules",
        "a tick that was fired before is fired again",
        Edit(_SCHEDULES, "if fresh and fire.job is not None:", "if fire.job is not None:"),
        "test_schedule_fire.py::test_a_tick_is_never_dealt_with_twice",
    ),
)
