"""The guards of the store one by one, each with a way to take it out and the tests that must notice."""

from __future__ import annotations

from prove.defects.defect import Edit
from prove.defects.mutant import Mutant

__all__ = ["GUARDS", "MUTANTS"]

GUARDS = (
    "attempt check",
    "lease check",
    "row count check",
    "unique commit",
    "expiry re-check in the reaper",
    "same-transaction record",
    "write lock",
)


def _fence(database: str, *cases: str) -> tuple[str, ...]:
    return tuple(f"contract/jobs/test_fence.py::test_a_lost_lease_is_powerless[{database}-{case}]" for case in cases)


MUTANTS = (
    # -- the attempt is the fence --------------------------------------------------------------------------------
    Mutant(
        "attempt check",
        "sqlite",
        "the holder is not asked for its attempt",
        (Edit("store/sqlite/verb_base.py", "if job.attempt != attempt:", "if False:"),),
        _fence("sqlite", "reclaimed", "ahead"),
    ),
    Mutant(
        "attempt check",
        "postgres",
        "the holder is not asked for its attempt",
        (Edit("store/jobs/functions/attempts.sql", "ELSIF j.attempt <> p_attempt THEN", "ELSIF false THEN"),),
        _fence("postgres", "reclaimed", "ahead"),
    ),
    Mutant(
        "attempt check",
        "postgres",
        "finish takes whatever attempt is current",
        (
            Edit("store/jobs/functions/job_finish_v2.sql", "AND j.attempt = p_attempts[1] AND j.state", "AND j.state"),
            Edit("store/jobs/functions/job_finish_v2.sql", "AND j.attempt = u.attempt AND j.state", "AND j.state"),
        ),
        _fence("postgres", "reclaimed"),
    ),
    # -- a lease that has ended holds nothing --------------------------------------------------------------------
    Mutant(
        "lease check",
        "sqlite",
        "the holder's lease may have expired",
        (
            Edit(
                "store/sqlite/verb_base.py",
                "if job.lease_expires_at is None or job.lease_expires_at <= now:",
                "if False:",
            ),
        ),
        _fence("sqlite", "expired"),
    ),
    Mutant(
        "lease check",
        "postgres",
        "the holder's lease may have expired",
        (Edit("store/jobs/functions/attempts.sql", "WHERE l.id = j.lease_id AND l.expires_at > t", "WHERE true"),),
        _fence("postgres", "expired"),
    ),
    Mutant(
        "lease check",
        "postgres",
        "finish under an expired lease",
        (
            Edit(
                "store/jobs/functions/job_finish_v2.sql",
                "WHERE l.id = j.lease_id) > t)",
                "WHERE l.id = j.lease_id) > '-infinity')",
                2,
            ),
        ),
        _fence("postgres", "expired"),
    ),
    Mutant(
        "lease check",
        "postgres",
        "finish of many under an expired lease",
        (Edit("store/jobs/functions/job_finish_v2.sql", "WHERE l.expires_at > t AND l.id IN (", "WHERE l.id IN ("),),
        ("contract/jobs/test_job_finish.py::test_many_under_several_leases_each_by_its_own[postgres-expired]",),
    ),
    # -- how many rows a statement changed is its answer ---------------------------------------------------------
    Mutant(
        "row count check",
        "sqlite",
        "a row too few goes unnoticed",
        (Edit("store/sqlite/verb_base.py", "if changed != expected:", "if False:"),),
        ("mutants/test_row_counts.py::test_a_place_in_the_queue_does_not_make_a_job_pending",),
    ),
    Mutant(
        "row count check",
        "sqlite",
        "a user's entity moves by more than one row",
        (
            Edit(
                "store/entities/sqlite.py", "(to_state, entity_id, state)) != 1:", "(to_state, entity_id, state)) < 0:"
            ),
        ),
        ("mutants/test_row_counts.py::test_two_rows_of_one_id_are_not_moved[sqlite]",),
    ),
    Mutant(
        "row count check",
        "postgres",
        "a user's entity moves by more than one row",
        (
            Edit(
                "store/entities/postgres.py",
                "(to_state, entity_id, state), len)) != 1:",
                "(to_state, entity_id, state), len)) < 0:",
            ),
        ),
        ("mutants/test_row_counts.py::test_two_rows_of_one_id_are_not_moved[postgres]",),
    ),
    Mutant(
        "row count check",
        "postgres",
        "finish takes no row for success",
        (Edit("store/jobs/functions/job_finish_v2.sql", "IF done = cardinality(p_ids) THEN", "IF true THEN"),),
        _fence("postgres", "expired", "reclaimed"),
    ),
    # -- one commit for ever -------------------------------------------------------------------------------------
    Mutant(
        "unique commit",
        "sqlite",
        "the index is missing",
        (
            Edit(
                "store/sqlite/schema/0001_tables.sql",
                "CREATE UNIQUE INDEX detent_execution_one_commit ON detent_execution (job_id) "
                "WHERE committed_at IS NOT NULL;",
                "",
            ),
        ),
        ("migrations/test_both_kinds.py::test_indexes_have_the_same_names",),
    ),
    Mutant(
        "unique commit",
        "sqlite",
        "the record lets itself be replaced",
        (
            Edit(
                "store/entities/sqlite_guards.sql",
                "    OR (NEW.committed_at IS NOT NULL\n        AND EXISTS (SELECT 1 FROM detent_execution "
                "WHERE job_id = NEW.job_id AND committed_at IS NOT NULL))\n",
                "",
            ),
        ),
        ("mutants/test_one_commit.py::test_a_commit_is_not_replaced_by_that_of_another_attempt",),
    ),
    Mutant(
        "unique commit",
        "postgres",
        "the index is missing",
        (
            Edit(
                "store/postgres/schema/0001_tables.sql",
                "CREATE UNIQUE INDEX execution_one_commit ON detent.execution (job_id) WHERE committed_at IS NOT NULL;",
                "",
            ),
        ),
        ("guards/test_by_hand.py::test_a_second_commit_is_refused[postgres]",),
    ),
    Mutant(
        "unique commit",
        "sqlite",
        "a commit does not ask for an earlier one",
        (
            Edit(
                "store/jobs/sqlite_endings.py",
                "if job is not None and job.committed_at is not None:\n            return AlreadyCommitted",
                "if job is None:\n            return AlreadyCommitted",
            ),
        ),
        ("contract/jobs/test_job_commit.py::test_a_second_commit_is_refused[sqlite]",),
    ),
    Mutant(
        "unique commit",
        "sqlite",
        "the mark of a block is forgotten",
        (Edit("store/sqlite/driver/group_commit.py", "self._unmarked[member.job_id] = member", "pass"),),
        ("contract/jobs/test_boundary.py::test_a_second_block_is_refused[sqlite]",),
    ),
    Mutant(
        "unique commit",
        "sqlite",
        "a block does not ask for one of the same job before it in its group",
        (Edit("store/sqlite/driver/group_commit.py", "return job_id in self._unmarked", "return False"),),
        ("store/sqlite/test_group_commit.py::test_a_job_is_committed_once_by_blocks_of_one_group",),
    ),
    Mutant(
        "unique commit",
        "postgres",
        "a commit does not ask for an earlier one",
        (
            Edit(
                "store/jobs/functions/commit.sql",
                "IF j.committed_at IS NOT NULL THEN\n    committed_attempt := j.attempt;\n  ELSE\n",
                "IF false THEN\n    committed_attempt := j.attempt;\n  ELSE\n",
            ),
        ),
        ("contract/jobs/test_job_commit.py::test_a_second_commit_is_refused[postgres]",),
    ),
    Mutant(
        "unique commit",
        "postgres",
        "the mark of a block does not ask for an earlier one",
        (Edit("store/jobs/functions/commit.sql", "AND committed_at IS NULL\n", "\n"),),
        ("store/postgres/test_commit_block.py::test_of_two_blocks_of_one_attempt_the_first_to_end_is_the_commit",),
    ),
    Mutant(
        "lease check",
        "postgres",
        "the mark of a block does not ask for the lease",
        (
            Edit(
                "store/jobs/functions/commit.sql",
                "\n       AND (SELECT l.expires_at FROM detent.lease l WHERE l.id = lease_id) > t\n",
                "\n",
            ),
        ),
        ("store/postgres/test_commit_block.py::test_the_mark_refuses_whoever_lost_the_lease_meanwhile",),
    ),
    # -- whoever ends another's attempt asks again, where it acts ------------------------------------------------
    Mutant(
        "expiry re-check in the reaper",
        "sqlite",
        "what it found is not asked again",
        (
            Edit("store/jobs/sqlite_endings.py", "WHERE expires_at <= ? AND NOT", "WHERE ? IS NOT NULL AND NOT"),
            Edit(
                "store/jobs/sqlite_endings.py",
                "WHERE l.id = ? AND l.expires_at <= ?",
                "WHERE l.id = ? AND ? IS NOT NULL",
            ),
        ),
        ("contract/jobs/test_lease_reap.py::test_a_living_lease_is_left_alone[sqlite]",),
    ),
    Mutant(
        "expiry re-check in the reaper",
        "postgres",
        "it looks, and acts on what it saw",
        (
            Edit(
                "store/jobs/functions/endings.sql",
                "ORDER BY l.expires_at, l.id LIMIT p_limit FOR UPDATE SKIP LOCKED\n  LOOP\n    FOR j IN\n",
                "ORDER BY l.expires_at, l.id LIMIT p_limit\n  LOOP\n    FOR j IN\n",
            ),
        ),
        ("mutants/test_reaper_race.py::test_a_lease_that_is_just_being_renewed_is_not_reaped",),
    ),
    # -- the change and its record are one -----------------------------------------------------------------------
    Mutant(
        "same-transaction record",
        "sqlite",
        "an end without its execution",
        (
            Edit(
                "store/jobs/sqlite_endings.py",
                'self._expect(self._db.change(_DONE, told), len(results), told["ids"], "running")',
                "",
            ),
        ),
        ("contract/jobs/test_job_finish.py::test_the_job_succeeds[sqlite]",),
    ),
    Mutant(
        "same-transaction record",
        "postgres",
        "an end without its execution",
        (
            Edit(
                "store/jobs/functions/endings.sql",
                "      FROM ended e;",
                "      FROM ended e WHERE false;",
            ),
        ),
        ("contract/jobs/test_lease_reap.py::test_unknown_and_cancelled_follow_the_rules_of_an_abort[postgres]",),
    ),
    Mutant(
        "same-transaction record",
        "sqlite",
        "what failed half-way stays",
        (
            Edit(
                "store/sqlite/driver/database.py",
                'and connection.in_transaction:\n            connection.execute_own("ROLLBACK")\n\n    def _end(',
                'and connection.in_transaction:\n            connection.execute_own("COMMIT")\n\n    def _end(',
            ),
            Edit(
                "store/sqlite/driver/group_commit.py",
                'self.executor.change(f"ROLLBACK TO {_SAVEPOINT}")',
                'self.executor.change("SELECT 1")',
            ),
        ),
        ("contract/jobs/test_boundary.py::test_an_exception_inside_the_block_leaves_nothing[sqlite]",),
    ),
    Mutant(
        "same-transaction record",
        "postgres",
        "the effect outside of the transaction of its mark",
        (Edit("store/postgres/driver/direct_statements.py", 'self._command(b"BEGIN")', 'self._command(b"SELECT")'),),
        ("contract/jobs/test_boundary.py::test_an_exception_inside_the_block_leaves_nothing[postgres]",),
    ),
    Mutant(
        "same-transaction record",
        "sqlite",
        "a logged move without its line",
        (
            Edit(
                "store/jobs/sqlite_cancels.py",
                "at = self._log(job, to_state, trigger, actor, reason, now, metadata)",
                "at = max(now, job.last_at)",
            ),
        ),
        ("contract/jobs/test_job_discard.py::test_dead_letters_and_failures_become_cancelled[sqlite]",),
    ),
    Mutant(
        "same-transaction record",
        "postgres",
        "a logged move without its line",
        (
            Edit(
                "store/jobs/functions/moves.sql",
                "PERFORM detent.job_log(j, p_to, p_trigger, p_actor, p_reason, n, p_metadata);",
                "",
            ),
        ),
        ("contract/jobs/test_job_discard.py::test_dead_letters_and_failures_become_cancelled[postgres]",),
    ),
    Mutant(
        "same-transaction record",
        "sqlite",
        "the guard does not ask for the line",
        (
            Edit(
                "store/jobs/sqlite_guards.sql",
                "THEN RAISE(ABORT, 'DT041 job: this move is made only together with its line in transition_log')",
                "THEN NULL",
            ),
        ),
        ("guards/test_by_hand.py::test_an_old_line_does_not_serve_again[sqlite]",),
    ),
    Mutant(
        "same-transaction record",
        "postgres",
        "the guard does not ask for the line",
        (
            Edit(
                "store/jobs/postgres_guards.sql",
                "    RAISE EXCEPTION 'DT041 job % may go from % to % only together with its line in transition_log',\n"
                "      OLD.id, OLD.state, NEW.state USING ERRCODE = 'DT041';",
                "    RETURN NEW;",
            ),
        ),
        ("guards/test_by_hand.py::test_an_old_line_does_not_serve_again[postgres]",),
    ),
    Mutant(
        "same-transaction record",
        "sqlite",
        "the row may leave running without an end",
        (
            Edit(
                "store/sqlite/schema/0001_tables.sql",
                "CHECK ((state = 'running') = (ended < attempt))",
                "CHECK (ended <= attempt)",
            ),
        ),
        ("guards/test_by_hand.py::test_a_bare_set_state_is_refused[sqlite-running]",),
    ),
    Mutant(
        "same-transaction record",
        "postgres",
        "the row may leave running without an end",
        (
            Edit(
                "store/postgres/schema/0001_tables.sql",
                "CHECK (attempt - ended = (state = 'running')::integer)",
                "CHECK (ended <= attempt)",
            ),
        ),
        ("guards/test_by_hand.py::test_a_bare_set_state_is_refused[postgres-running]",),
    ),
    # -- fair turns between processes and threads ----------------------------------------------------------------
    Mutant(
        "write lock",
        "sqlite",
        "writers do not pass it",
        (
            Edit(
                "store/sqlite/driver/database.py",
                "self._write_lock.acquire(_left(turn.until))",
                "pass",
            ),
        ),
        ("store/sqlite/test_write_lock.py::test_a_frozen_writer_makes_others_fail_in_time",),
    ),
    Mutant(
        "write lock",
        "sqlite",
        "threads go last come, first served",
        (
            Edit(
                "store/sqlite/driver/write_lock.py",
                "first = self._waiting[0]\n",
                "self._waiting.rotate()\n        first = self._waiting[0]\n",
            ),
        ),
        ("store/sqlite/test_write_lock.py::test_threads_take_turns_in_the_order_of_asking",),
    ),
)
