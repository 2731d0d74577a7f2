"""How often a worker looks that is kept back by limits."""

from __future__ import annotations

import pytest

from detent.model.limit_records import LimitRow
from detent.worker.claimer import look_every


def limit(rate: float | None, burst: float, per: float = 1.0) -> LimitRow:
    return LimitRow(
        key="shop",
        rate=rate,
        per=per,
        burst=burst,
        concurrency_max=None,
        tasks=(),
        queues=(),
        tokens=0.0,
        running=0,
        paused_until=None,
        throttled=0,
        open_until=None,
    )


@pytest.mark.parametrize(
    ("limits", "seconds"),
    [
        ([], 1.0),
        ([limit(None, 1.0)], 1.0),
        ([limit(2.0, 40.0)], 1.0),
        ([limit(2.0, 1.0)], 0.25),
        ([limit(2.0, 40.0), limit(4.0, 1.0)], 0.125),
        ([limit(600.0, 5.0, per=60.0)], 0.25),
        ([limit(1000.0, 1.0)], 0.05),
    ],
)
def test_no_bucket_overflows_between_two_looks(limits: list[LimitRow], seconds: float) -> None:
    """B5: with two a second and room for one, a look a second would let half of them go to waste."""
    assert look_every(limits) == pytest.approx(seconds)
