"""Jobs that differ by id and arguments alone, without an object for each."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from detent.model.records import NewJob
from detent.model.uniform_jobs import UniformJobs, as_uniform, ids_of, representatives

LIKE = NewJob(id=0, task="t", payload="", nonce=7, fingerprint="", queue="q", group=3)
MANY = UniformJobs(LIKE, [3, 4, 5], ["a", "b", "c"])
LISTED = [replace(LIKE, id=3, payload="a"), replace(LIKE, id=4, payload="b"), replace(LIKE, id=5, payload="c")]


def test_they_are_the_jobs_they_stand_for() -> None:
    assert len(MANY) == 3
    assert list(MANY) == LISTED
    assert [MANY[0], MANY[-1]] == [LISTED[0], LISTED[2]]
    assert list(MANY[1:]) == LISTED[1:]
    assert LISTED[1] in MANY
    with pytest.raises(IndexError):
        MANY[3]


def test_what_is_alike_is_gathered() -> None:
    found = as_uniform(LISTED)
    assert isinstance(found, UniformJobs)
    assert list(found) == LISTED
    assert as_uniform(MANY) is MANY


@pytest.mark.parametrize(
    "changed",
    [
        {"task": "other"},
        {"queue": "other"},
        {"tenant": "other"},
        {"priority": 1},
        {"nonce": 8},
        {"group": 4},
        {"key": "k"},
        {"metadata": "{}"},
        {"run_id": 1},
        {"limit_key": "l"},
        {"cost": 2},
        {"attempts_max": 9},
        {"dead_letter": False},
        {"idempotent": False},
        {"unique_pending": True},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_one_that_is_not_alike_is_not_lost_among_them(changed: dict[str, object]) -> None:
    for place in range(3):
        items = list(LISTED)
        items[place] = replace(items[place], **changed)
        assert as_uniform(items) is items


def test_what_has_a_key_or_is_alone_stays_as_it_is() -> None:
    """A key's fingerprint says whether two requests are the same."""
    for items in ([], LISTED[:1], [replace(job, key="k") for job in LISTED]):
        assert as_uniform(items) is items


def test_kinds_and_ids() -> None:
    assert [job.queue for job in representatives(MANY)] == ["q"]
    assert representatives(LISTED) is LISTED
    assert list(ids_of(MANY)) == list(ids_of(LISTED)) == [3, 4, 5]
