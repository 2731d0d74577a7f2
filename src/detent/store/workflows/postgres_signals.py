"""The mailboxes of workflows on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, JobEnded, KeyConflict, MailboxFull, NotFound, WaitOver
from detent.model.workflow_records import NewSignal, SignalSent
from detent.store.postgres.statement import Row, Statement, numbers, texts
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = ["PostgresSignals", "signal_key", "signal_redeem", "signal_send"]

_SEND = """
SELECT ord, answer, seq, detail, requested
  FROM detent.signal_send_v1(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], {}, {})
"""
_REDEEM = """
SELECT ord, answer, seq, detail, requested
  FROM detent.signal_redeem_v1(%s::bigint, %s::integer, %s::text, %s::text, %s::text, %s::text, %s::text, %s::text, {})
"""
_WAKE = "SELECT detent.signal_wake_v1(%s::bigint[])"
_Sent = list[SignalSent | DetentError]


def signal_send(items: Sequence[NewSignal], *, apart: bool, notify: bool) -> Statement[tuple[_Sent, bool]]:
    """Return the answers, and whether wake requests were left."""

    def decode(rows: Sequence[Row]) -> tuple[_Sent, bool]:
        answers: dict[int, SignalSent | DetentError] = {}
        requested = False
        for place, answer, seq, detail, left in rows:
            if place == 0:
                requested = left
            else:
                answers[place] = _sent(items[place - 1], answer, seq, detail)
        return [answers[n] for n in range(1, len(items) + 1)], requested

    params = (
        numbers(item.job_id for item in items),
        texts(item.name for item in items),
        texts(item.payload for item in items),
        texts(item.dedupe for item in items),
        texts(item.actor for item in items),
        texts(item.reason for item in items),
    )
    return Statement(_SEND.format(apart, notify), params, decode)


def signal_redeem(item: NewSignal, generation: int, token: str, *, notify: bool) -> Statement[SignalSent | DetentError]:
    """Return the answer."""

    def decode(rows: Sequence[Row]) -> SignalSent | DetentError:
        _, answer, seq, detail, _ = next(row for row in rows if row[0] == 1)
        return _sent(item, answer, seq, detail)

    about = (item.name, item.payload, item.dedupe, item.actor, item.reason)
    return Statement(_REDEEM.format(notify), (item.job_id, generation, token, *about), decode)


def signal_key() -> Statement[str | None]:
    """Return the secret; None if there is none."""
    return Statement("SELECT detent.signal_key_v1()", (), lambda rows: rows[0][0], writes=False)


def _sent(item: NewSignal, answer: str, seq: int, detail: str | None) -> SignalSent | DetentError:
    match answer:
        case "sent" | "found":
            return SignalSent(item.job_id, seq, answer == "sent")
        case "ended":
            return JobEnded(item.job_id, detail or "")
        case "conflict":
            return KeyConflict(item.dedupe or "", detail or "", item.job_id, "signal")
        case "full":
            return MailboxFull(item.job_id, int(detail or 0))
        case "over":
            return WaitOver(item.job_id, item.name)
        case _:
            return NotFound("job", str(item.job_id))


class PostgresSignals(VerbBase):
    """`signal_send`, `signal_redeem` and `signal_key`."""

    def signal_send(self, items: Sequence[NewSignal], *, apart: bool = False) -> list[SignalSent | DetentError]:
        """In a transaction of its own the requests that it has left are tried again at once: whoever had the job locked
        is often done by then."""
        if not items:
            return []
        answers, requested = self._session.run(signal_send(items, apart=apart, notify=self._callers_own))
        if requested and not apart and not self._callers_own:
            ids = numbers(dict.fromkeys(item.job_id for item in items))
            self._session.run(Statement(_WAKE, (ids,), lambda rows: None))
        self._forget_bounds()
        return answers

    def signal_redeem(self, item: NewSignal, generation: int, token: str) -> SignalSent | DetentError:
        """It holds the lock of the job, so it wakes the job itself."""
        answer = self._session.run(signal_redeem(item, generation, token, notify=self._callers_own))
        self._forget_bounds()
        return answer

    signal_key = runs(signal_key)
