"""Defects of workers and their services and the proofs that must find them."""

from __future__ import annotations

from prove.defects.defect import Defect, Edit
from prove.defects.proofs import simulation, tests

__all__ = ["SERVICES", "WORKER"]

_DEAD_CHILD = "worker/supervisor/dead_child.py"
_FLUSHER = "worker/child/flusher.py"
_DEAD_CHILD_TEST = "worker/supervisor/test_dead_child.py::test_"
_HISTORY = "worker/attempt/history.py"

WORKER = (
    Defect(
        "dead child",
        "worker",
        "a job whose end was not written yet is repeated when its process dies",
        (
            Edit(
                _DEAD_CHILD,
                'if outcome in ("cancelled", "released") and job is not None',
                'if entry is not None and outcome in ("cancelled", "released") and job is not None',
            ),
        ),
        simulation(),
    ),
    Defect(
        "begun off the record",
        "worker",
        "a job that must not be repeated begins without a record of that",
        (Edit(_HISTORY, "elif not options.idempotent:\n        (answer,)", "elif False:\n        (answer,)"),),
        simulation(),
    ),
    Defect(
        "no memory",
        "worker",
        "an attempt does not ask what became of the effect of an earlier one",
        (Edit(_HISTORY, "    if not unknown:\n        return None\n", "    return None\n"),),
        simulation(),
    ),
    Defect(
        "time-out of the innocent",
        "worker",
        "a job that may not have caused it is charged with a time-out",
        (Edit(_DEAD_CHILD, "if is_overdue and death.called_in_process == entry.in_process:", "if is_overdue:"),),
        tests(f"{_DEAD_CHILD_TEST}a_time_out_is_charged_only_to_who_can_have_caused_it"),
    ),
    Defect(
        "cancel of another attempt",
        "worker",
        "an attempt that died is cancelled because an earlier one was to be",
        (
            Edit(
                _DEAD_CHILD,
                "if (job_id, attempt) in death.cancels:",
                "if job_id in {cancelled for cancelled, _ in death.cancels}:",
            ),
        ),
        tests(f"{_DEAD_CHILD_TEST}a_cancel_is_obeyed_only_by_its_attempt"),
    ),
    Defect(
        "board of another attempt",
        "worker",
        "what the board says of an earlier attempt is taken for the current one",
        (Edit(_DEAD_CHILD, "if entry is None or entry.attempt != attempt:", "if entry is None:"),),
        tests(f"{_DEAD_CHILD_TEST}another_attempt_of_the_same_job_is_another_matter"),
    ),
    Defect(
        "cost after the end",
        "worker",
        "what an attempt has cost is written after it has ended",
        (
            Edit(_FLUSHER, "        charged = verbs.limit_charge(batch.charges) if batch.charges else []\n", ""),
            Edit(
                _FLUSHER,
                "        # It was cut short after its commit",
                "        charged = verbs.limit_charge(batch.charges) if batch.charges else []\n"
                "        # It was cut short after its commit",
            ),
        ),
        tests("worker/child/test_flusher.py::test_what_attempts_cost_is_written_before_they_end"),
    ),
)

SERVICES = (
    Defect(
        "no promotion",
        "services",
        "jobs that are due again stay among those that wait",
        (Edit("worker/services/due_jobs.py", "at=lambda agenda: agenda.promote_at", "at=lambda agenda: None"),),
        simulation(),
    ),
    Defect(
        "no reaper",
        "services",
        "expired leases stay",
        (Edit("worker/services/reaper.py", "at=lambda agenda: agenda.reap_at", "at=lambda agenda: None"),),
        simulation(),
    ),
    Defect(
        "jump of the clock",
        "services",
        "the reaper takes leases that expired while no worker could renew any",
        (Edit("store/jobs/sqlite_endings.py", "return gap_from, gap_to", "return 0, 0"),),
        tests(
            "worker/services/test_service_set.py::test_a_jump_of_the_clock_takes_nothing_from_a_living_holder[sqlite]"
        ),
    ),
)
