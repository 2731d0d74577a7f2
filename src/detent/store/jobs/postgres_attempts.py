"""The attempt on PostgreSQL: start, events, renewal, commit, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import psycopg

from detent.errors import AlreadyCommitted, DetentError, InvalidInput, LeaseLost, NotFound, WrongPlace
from detent.model.records import (
    Abort,
    Aborted,
    Appended,
    BadRow,
    Commit,
    Committed,
    EffectBegun,
    EffectEvidence,
    Finish,
    Finished,
    NewEvent,
    Reaped,
    Renewal,
    Started,
)
from detent.store.jobs.postgres_enqueue import new_jobs, refusal
from detent.store.postgres.statement import Row, Statement, flags, numbers, texts
from detent.store.postgres.verb_base import VerbBase, requeues, runs, runs_each
from detent.store.row_errors import cause_of

__all__ = ["PostgresAttempts", "commit_check", "event_append", "job_commit", "job_mark", "mark_refused"]

_START = "SELECT ord, instead FROM detent.job_start_v1(%s::bigint[], %s::integer[])"
_BEGIN = "SELECT instead, committed_attempt, nonce FROM detent.effect_begin_v2(%s::bigint, %s::integer, %s::text)"
_RENEW = """
SELECT lease_id, cancel_requested, cancel_attempts
  FROM detent.lease_renew_v3(%s::bigint[], %s::double precision, %s::bigint[], %s::bigint[])
"""
_CANCELS = "SELECT job_id, attempt FROM detent.cancel_find_v1(%s::bigint[], %s::integer[])"
_APPEND = """
SELECT ord, seq, created, instead
  FROM detent.event_append_v1(%s::bigint[], %s::integer[], %s::text[], %s::text[], %s::text[], %s::text[])
"""
_CHECK = "SELECT instead, committed_attempt, xact FROM detent.commit_check_v1(%s::bigint, %s::integer, %s::boolean)"
_COMMIT = """
SELECT instead, committed_attempt, other_xact, answer, job_id, cause
  FROM detent.job_commit_v1(%s::bigint, %s::integer, %s::text, %s::text{})
"""
# Sent together with the COMMIT, which may follow only if the mark was set. So a refusal is an error.
_MARK = "SELECT detent.job_mark_v1(%s::bigint, %s::integer, %s::text, %s::text)"
_FINISH = """
SELECT ord, instead FROM detent.job_finish_v2(%s::bigint[], %s::integer[], %s::jsonb, %s::text, %s::bigint[])
"""
_ABORT = """
SELECT ord, outcome, state, committed, instead
  FROM detent.job_abort_v2(%s::bigint[], %s::integer[], %s::text[], %s::text[], %s::double precision[], %s::boolean[],
                           %s::text, %s::bigint[], %s::boolean[])
"""
_NOT_THE_CALLERS = ("done", "expired", "parked")
_RECOVER = "SELECT job_id, attempt, committed, state FROM detent.job_recover_v1(%s::bigint[])"
_REAP = (
    "SELECT leases, aborted, recovered, passed_over FROM detent.lease_reap_v2(%s::integer, NULL, %s::double precision)"
)
_REAP_EACH = """
SELECT leases, aborted, recovered, passed_over, bad_leases, bad_jobs, causes
  FROM detent.lease_reap_each_v2(%s::integer, %s::bigint[], %s::double precision)
"""


def job_start(items: Sequence[tuple[int, int]]) -> Statement[list[Started | DetentError]]:
    def decode(rows: Sequence[Row]) -> list[Started | DetentError]:
        answers: list[Started | DetentError] = [Started(*item) for item in items]
        for place, found in rows:
            job_id, attempt = items[place - 1]
            answers[place - 1] = LeaseLost(job_id, attempt, found)
        return answers

    return Statement(_START, (numbers(item[0] for item in items), numbers(item[1] for item in items)), decode)


def effect_begin(job_id: int, attempt: int, evidence: EffectEvidence) -> Statement[EffectBegun | DetentError]:
    def decode(rows: Sequence[Row]) -> EffectBegun | DetentError:
        found, committed_attempt, nonce = rows[0]
        return _not_holding(job_id, attempt, found, committed_attempt) or EffectBegun(job_id, attempt, nonce)

    return Statement(_BEGIN, (job_id, attempt, evidence), decode)


def lease_renew(
    lease_ids: Sequence[int], lease: float, begun: Mapping[int, float] | None = None
) -> Statement[list[Renewal]]:
    def decode(rows: Sequence[Row]) -> list[Renewal]:
        held = {lease_id: tuple(zip(jobs, attempts, strict=True)) for lease_id, jobs, attempts in rows}
        return [Renewal(lease_id, lease_id in held, held.get(lease_id, ())) for lease_id in lease_ids]

    started = begun or {}
    params = (numbers(lease_ids), float(lease), numbers(started), _micros(started.values()))
    return Statement(_RENEW, params, decode)


def cancel_find(items: Sequence[tuple[int, int]]) -> Statement[list[tuple[int, int]]]:
    params = (numbers(job_id for job_id, _ in items), numbers(attempt for _, attempt in items))
    return Statement(_CANCELS, params, lambda rows: [(job_id, attempt) for job_id, attempt in rows])


def event_append(items: Sequence[NewEvent]) -> Statement[list[Appended | DetentError]]:
    def decode(rows: Sequence[Row]) -> list[Appended | DetentError]:
        answers = {row[0]: _appended(items[row[0] - 1], *row[1:]) for row in rows}
        return [answers[n] for n in range(1, len(items) + 1)]

    params = (
        numbers(item.job_id for item in items),
        numbers(item.attempt for item in items),
        texts(item.level for item in items),
        texts(item.message for item in items),
        texts(item.payload for item in items),
        texts(item.key for item in items),
    )
    return Statement(_APPEND, params, decode)


def _appended(item: NewEvent, seq: int | None, created: bool, found: str | None) -> Appended | DetentError:
    if seq is not None:
        return Appended(item.job_id, seq, created)
    if item.attempt is None or found is None:
        return NotFound("job", str(item.job_id))
    return LeaseLost(item.job_id, item.attempt, found)


def commit_check(job_id: int, attempt: int, *, settled: bool = False) -> Statement[tuple[DetentError | None, str]]:
    """Return the error if this attempt may not commit, else None, and the number of the transaction that asked."""

    def decode(rows: Sequence[Row]) -> tuple[DetentError | None, str]:
        found, committed_attempt, xact = rows[0]
        return _not_holding(job_id, attempt, found, committed_attempt), xact

    return Statement(_CHECK, (job_id, attempt, settled), decode)


def job_commit(item: Commit, xact: str | None = None) -> Statement[Committed | DetentError]:
    """Set the mark. `xact` is the transaction in which the holder was checked."""

    def decode(rows: Sequence[Row]) -> Committed | DetentError:
        found, committed_attempt, other_xact, answer, job_id, cause = rows[0]
        if other_xact:
            return _other_xact()
        if refused := _not_holding(item.job_id, item.attempt, found, committed_attempt):
            return refused
        if answer is not None:
            return refusal(item.intents[cause - 1], answer, job_id)
        return Committed(item.job_id, item.attempt)

    one_group = [msgspec.structs.replace(intent, group=0) for intent in item.intents]
    places, values = new_jobs(one_group)
    statement = _COMMIT.format(f", {places}" if places else "")
    return Statement(statement, (item.job_id, item.attempt, item.result, xact, *values), decode)


def job_mark(item: Commit, xact: str) -> Statement[None]:
    """Set the mark of a block without intents in a trip that ends with COMMIT. `mark_refused` explains its errors."""
    assert not item.intents
    return Statement(_MARK, (item.job_id, item.attempt, item.result, xact), lambda rows: None)


def mark_refused(error: Exception, item: Commit) -> DetentError | None:
    """Return the error that refused the mark, by its SQLSTATE; None if the error is another one."""
    diag = error.diag if isinstance(error, psycopg.Error) else None
    found = "" if diag is None or diag.message_detail is None else diag.message_detail
    match None if diag is None else diag.sqlstate:
        case "DT004":
            return LeaseLost(item.job_id, item.attempt, found)
        case "DT005":
            return AlreadyCommitted(item.job_id, int(found))
        case "DT010":
            return _other_xact()
        case _:
            return None


def _other_xact() -> WrongPlace:
    return WrongPlace("COMMIT or ROLLBACK", "inside a commit block", "the block ends its transaction by itself")


def _not_holding(job_id: int, attempt: int, found: str | None, committed_attempt: int | None) -> DetentError | None:
    if committed_attempt is not None:
        return AlreadyCommitted(job_id, committed_attempt)
    return None if found is None else LeaseLost(job_id, attempt, found)


def job_finish(items: Sequence[Finish], worker: str) -> Statement[list[Finished | DetentError]]:
    """Rows come back only for refusals: the ordinary answer is empty."""
    sent: Iterable[Finish] = items
    if len({item.job_id for item in items}) < len(items):
        # The first of several endings of one attempt counts, with its result and its time, or without.
        first = {(item.job_id, item.attempt): item for item in reversed(items)}
        sent = first.values()
        begun = [first[item.job_id, item.attempt].begun_after for item in items]
    else:
        begun = [item.begun_after for item in items]
    # Jobs with a time of their call go last: PostgreSQL ends the others, which are nearly all, in a quicker way.
    order: Sequence[int] = range(len(items))
    timed = [place for place in order if begun[place] is not None]
    if timed:
        order = [*(place for place in order if begun[place] is None), *timed]

    def decode(rows: Sequence[Row]) -> list[Finished | DetentError]:
        answers: list[Finished | DetentError] = [Finished(item.job_id, item.attempt) for item in items]
        for ord_, found in rows:
            place = order[ord_ - 1]
            answers[place] = LeaseLost(items[place].job_id, items[place].attempt, found)
        return answers

    attempts = [items[place].attempt for place in order]
    results = {f"{item.job_id}:{item.attempt}": item.result for item in sent if item.result is not None}
    params = (
        numbers(items[place].job_id for place in order),
        numbers(attempts[:1] if attempts.count(attempts[0]) == len(attempts) else attempts),
        msgspec.json.encode(results).decode() if results else None,
        worker,
        _micros(begun[place] for place in timed) if timed else None,
    )
    return Statement(_FINISH, params, decode)


def _micros(seconds: Iterable[float | None]) -> str:
    """Return durations as an array of whole microseconds."""
    return numbers(None if one is None else int(one * 1_000_000) for one in seconds)


def job_abort(items: Sequence[Abort], worker: str) -> Statement[list[Aborted | DetentError]]:
    ours = [item for item in items if item.outcome not in _NOT_THE_CALLERS]

    def decode(rows: Sequence[Row]) -> list[Aborted | DetentError]:
        by_order = {row[0]: _aborted(ours[row[0] - 1], *row[1:]) for row in rows}
        answers = iter([by_order[n] for n in range(1, len(ours) + 1)])
        return [
            InvalidInput("outcome", item.outcome, "how an attempt failed; done, expired and parked are the engine's")
            if item.outcome in _NOT_THE_CALLERS
            else next(answers)
            for item in items
        ]

    params = (
        numbers(item.job_id for item in ours),
        numbers(item.attempt for item in ours),
        texts(item.outcome for item in ours),
        texts(item.error for item in ours),
        numbers(item.delay for item in ours),
        flags(item.fatal for item in ours),
        worker,
        _micros(item.begun_after for item in ours),
        flags(item.suspect for item in ours),
    )
    return Statement(_ABORT, params, decode)


def _aborted(item: Abort, outcome: str | None, state: str, committed: bool, found: str) -> Aborted | DetentError:
    if outcome is not None:
        return Aborted(item.job_id, item.attempt, outcome, state)  # type: ignore[arg-type]
    if committed:
        return AlreadyCommitted(item.job_id, item.attempt)
    return LeaseLost(item.job_id, item.attempt, found)


def job_recover(ids: Sequence[int]) -> Statement[list[Finished | DetentError]]:
    def decode(rows: Sequence[Row]) -> list[Finished | DetentError]:
        found = {row[0]: row[1:] for row in rows}
        return [_recovered(job_id, found.get(job_id)) for job_id in ids]

    return Statement(_RECOVER, (numbers(ids),), decode)


def _recovered(job_id: int, found: Row | None) -> Finished | DetentError:
    if found is None:
        return NotFound("job", str(job_id))
    attempt, committed, state = found
    return Finished(job_id, attempt) if committed else LeaseLost(job_id, attempt, f"the job is {state}")


def lease_reap(limit: int, grace: float | None = None) -> Statement[Reaped]:
    return Statement(_REAP, (limit, grace), _reaped)


def _reaped(rows: Sequence[Row]) -> Reaped:
    leases, aborted, recovered, passed_over = rows[0]
    return Reaped(leases, tuple(aborted), tuple(recovered), passed_over)


def lease_reap_each(limit: int, skip: Sequence[int], grace: float | None = None) -> Statement[Reaped]:
    return Statement(_REAP_EACH, (limit, numbers(skip), grace), _reaped_each)


def _reaped_each(rows: Sequence[Row]) -> Reaped:
    leases, aborted, recovered, passed_over, *bad = rows[0]
    found = tuple(
        BadRow("job", str(job_id), cause_of(Exception(cause)), lease_id)
        for lease_id, job_id, cause in zip(*bad, strict=True)
    )
    return Reaped(leases, tuple(aborted), tuple(recovered), passed_over, found)


class PostgresAttempts(VerbBase):
    """The verbs of the holder of an attempt, and of those that end attempts whose holder is gone."""

    job_start = runs_each(job_start)
    effect_begin = runs(effect_begin)
    lease_renew = runs_each(lease_renew)
    cancel_find = runs_each(cancel_find)
    event_append = runs_each(event_append)
    job_commit = runs(job_commit)
    job_finish = runs_each(job_finish)
    job_abort = requeues(runs_each(job_abort))
    job_recover = runs_each(job_recover)
    lease_reap = requeues(runs(lease_reap))
    lease_reap_each = requeues(runs(lease_reap_each))
