"""Counts of how attempts ended, for the last log line of a worker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from detent.errors import AlreadyCommitted
from detent.model.records import Aborted, Finished

__all__ = ["count_outcomes", "describe_counts"]

_ALWAYS_SHOWN = ("succeeded", "retried", "quarantined")
_SHOWN_AS = {"quarantined": "dead"}
"""The word for people, if it differs from the name of the state."""
_PUT_OFF = ("released", "snoozed", "throttled", "parked")


def count_outcomes(answers: Iterable[object]) -> Counter[str]:
    """Count what the database made of these attempts. Refusals do not count: the attempts were no longer ours."""
    counts: Counter[str] = Counter()
    for answer in answers:
        if isinstance(answer, Finished | AlreadyCommitted):
            counts["succeeded"] += 1
        elif isinstance(answer, Aborted):
            counts[_name_outcome(answer)] += 1
    return counts


def describe_counts(counts: Mapping[str, int]) -> str:
    """Return the counts for people: `12 succeeded, 3 retried, 1 dead`, and every other state that occurred."""
    others = sorted(word for word, count in counts.items() if count and word not in _ALWAYS_SHOWN)
    return ", ".join(f"{counts.get(word, 0)} {_SHOWN_AS.get(word, word)}" for word in (*_ALWAYS_SHOWN, *others))


def _name_outcome(aborted: Aborted) -> str:
    if aborted.state != "pending":
        return aborted.state
    return "put off" if aborted.outcome in _PUT_OFF else "retried"
