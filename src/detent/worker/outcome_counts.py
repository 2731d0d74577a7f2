"""How many jobs a worker has brought to an end, and to which: what it says when it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from detent.errors import AlreadyCommitted
from detent.model.records import Aborted, Finished

__all__ = ["count_outcomes", "describe_counts"]

_ALWAYS = ("succeeded", "retried", "quarantined")
_WORDS = {"quarantined": "dead"}
"""The word for people, where it differs from the name of the state."""
_PUT_OFF = ("released", "snoozed", "throttled")


def count_outcomes(answers: Iterable[object]) -> Counter[str]:
    """What the database made of these attempts; what it refused was somebody else's, and does not count."""
    counts: Counter[str] = Counter()
    for answer in answers:
        if isinstance(answer, Finished | AlreadyCommitted):
            counts["succeeded"] += 1
        elif isinstance(answer, Aborted):
            counts[_became(answer)] += 1
    return counts


def describe_counts(counts: Mapping[str, int]) -> str:
    """Return the counts for people: `12 succeeded, 3 retried, 1 dead`, and every other state that occurred."""
    others = sorted(word for word, count in counts.items() if count and word not in _ALWAYS)
    return ", ".join(f"{counts.get(word, 0)} {_WORDS.get(word, word)}" for word in (*_ALWAYS, *others))


def _became(aborted: Aborted) -> str:
    if aborted.state != "pending":
        return aborted.state
    return "put off" if aborted.outcome in _PUT_OFF else "retried"
