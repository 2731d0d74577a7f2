"""A delivery that is sent many times at once, on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from detent import Call, Context, Detent, WebhookDelivery


@pytest.mark.parametrize("calls", [1, 3])
def test_a_hundred_copies_at_once_make_one_delivery(ready_url: str, calls: int) -> None:
    """TW2: the key decides, so one of them creates the jobs, and the others find them."""
    with closing(Detent(ready_url)) as app:

        @app.task(name="ship")
        def ship(ctx: Context, order: int) -> None: ...

        @app.webhook("orders", secret="known to both", verify="github")
        def take(delivery: WebhookDelivery) -> Sequence[Call[Any]]:
            return [ship.call(number) for number in range(calls)]

        body = b'{"order": 7}'
        headers = take.signed(body, "d-1")
        with ThreadPoolExecutor(16) as threads:
            accepted = list(threads.map(lambda _: take.receive(headers, body), range(100)))
        assert [one.created for one in accepted].count(True) == 1
        assert {one.jobs for one in accepted} == {accepted[0].jobs}
        assert sorted(job.id for job in app.jobs.list()) == sorted(accepted[0].jobs)
        assert len(accepted[0].jobs) == calls
