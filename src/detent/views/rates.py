"""Rates over time for the console and metrics: how many jobs moved in each minute or hour, and how long they took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal

from detent.errors import InvalidInput
from detent.model.clock import to_micros
from detent.model.figure_records import Durations, RateCount, RatePoint, Rates
from detent.store.contract import Verbs
from detent.views.figures import durations

__all__ = ["STEPS", "Step", "rates_since"]

Step = Literal["minute", "hour"]

STEPS = {
    "minute": (timedelta(minutes=1), timedelta(hours=1), timedelta(hours=6)),
    "hour": (timedelta(hours=1), timedelta(hours=24), timedelta(hours=744)),
}
"""By name: the length of a step, how far back rates go unless the caller says otherwise, and how far at most."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rates_since(verbs: Verbs, since: datetime | None, step: str) -> Rates:
    """Return the rates from the beginning of the step of `since` until now. `InvalidInput`."""
    if step not in STEPS:
        raise InvalidInput("step", repr(step)[:80], " or ".join(map(repr, STEPS)))
    length, usual, longest = STEPS[step]
    until = verbs.now()
    if since is not None:
        to_micros(since, field="since")
        if since < until - longest - length:
            allowed = f"at most {longest // timedelta(hours=1)} hours ago for steps of a {step}"
            raise InvalidInput("since", since.isoformat(), allowed)
    begin = _floor(min(until - usual if since is None else since, until), length)
    counts = verbs.rates(begin, int(length.total_seconds()))
    by_step: dict[datetime, list[RateCount]] = {}
    for one in counts:
        by_step.setdefault(one.at, []).append(one)
    steps = max((until - begin) // length + 1, 1)
    return Rates(
        since=begin,
        until=until,
        step=step,
        points=[_point(at, by_step.get(at, ())) for at in (begin + n * length for n in range(steps))],
        waited=_waited(counts),
        ran=_ran(counts),
        success_rate=_success_rate(counts),
    )


def _floor(at: datetime, length: timedelta) -> datetime:
    return at.astimezone(UTC) - (at - _EPOCH) % length


def _point(at: datetime, counts: Sequence[RateCount]) -> RatePoint:
    moves: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    for one in counts:
        if one.to_state != "running":  # counted when the attempt ends, as its outcome is
            moves[one.to_state] = moves.get(one.to_state, 0) + one.moves
        if one.outcome:
            outcomes[one.outcome] = outcomes.get(one.outcome, 0) + one.moves
    return RatePoint(at=at, moves=moves, outcomes=outcomes, waited=_waited(counts), ran=_ran(counts))


def _waited(counts: Iterable[RateCount]) -> Durations:
    return durations(one for one in counts if one.to_state == "running")


def _ran(counts: Iterable[RateCount]) -> Durations:
    return durations(one for one in counts if one.outcome and one.bucket >= 0)


def _success_rate(counts: Iterable[RateCount]) -> float | None:
    ended = [one for one in counts if one.outcome and one.to_state in ("succeeded", "failed", "quarantined")]
    number = sum(one.moves for one in ended)
    return sum(one.moves for one in ended if one.to_state == "succeeded") / number if number else None
