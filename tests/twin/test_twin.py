"""The two databases and the reference model cannot drift: every step is compared, answer by answer and row by row.
`make test`: 25 lives of up to 30 steps; `make faults`: 200, or as many as DETENT_TWIN_EXAMPLES says."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from detent.store.contract import Store
from prove.reference.dump import NOT_COMPARED, TABLES, tables_of
from tests.twin.machine import Side
from tests.twin.machine_keeping import WholeTwin
from tests.twin.sides import OpenSides, side_on

SLICE, WHOLE = 25, int(os.environ.get("DETENT_TWIN_EXAMPLES", "200"))
STEPS = 30


@pytest.mark.timeout(600 if WHOLE <= 200 else 0)  # finding the smallest way to a difference takes its time
def test_model_and_databases_agree_after_every_step(open_sides: OpenSides, whole: bool) -> None:
    """J1-J7, J10-J14, B5, C1, C4, E1-E5, R1, W3: any sequence of verbs gives the same answers, and leaves the
    same rows everywhere."""
    make: Any = lambda: WholeTwin(open_sides)  # noqa: E731 - a factory serves as well as the class it is typed as
    run_state_machine_as_test(
        make,
        settings=settings(
            max_examples=WHOLE if whole else SLICE,
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=not whole,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


FORGETS: dict[str, Callable[[Store], Callable[..., Any]]] = {
    "job_cancel": lambda store: lambda ids, actor, reason=None: store.job_cancel(ids, "x", reason),
    "limit_put": lambda store: lambda item: store.limit_put(replace(item, concurrency_max=None)),
    "operation_start": lambda store: lambda item: store.operation_start(replace(item, reason=None)),
    "schedule_put": lambda store: lambda item: store.schedule_put(replace(item, tenant="")),
    "worker_seen": lambda store: lambda seen: store.worker_seen(replace(seen, stopping=False)),
}
"""A verb, and how to do it right but for one column."""


class Forgetful:
    """A store that does everything right, but for one column."""

    def __init__(self, store: Store, verb: str) -> None:
        self.store = store
        self.verb = verb

    def __getattr__(self, verb: str) -> Any:
        return FORGETS[verb](self.store) if verb == self.verb else getattr(self.store, verb)


@pytest.mark.parametrize("verb", FORGETS)
def test_a_store_that_forgets_one_column_is_noticed(sqlite_template: Path, tmp_path: Path, verb: str) -> None:
    """The comparison itself: a value that is not kept is found."""
    numbers = itertools.count(1)

    @contextmanager
    def opened() -> Iterator[list[Side]]:
        path = shutil.copy(sqlite_template, tmp_path / f"{next(numbers)}.db")
        with side_on("forgetful", f"sqlite:///{path}") as side:
            yield [side._replace(store=cast(Store, Forgetful(side.store, verb)))]

    make: Any = lambda: WholeTwin(opened)  # noqa: E731
    with pytest.raises(AssertionError, match=f"{verb}:? forgetful"):
        run_state_machine_as_test(
            make,
            settings=settings(
                max_examples=200,
                stateful_step_count=STEPS,
                deadline=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            ),
        )


def test_every_table_is_compared(open_sides: OpenSides) -> None:
    """A table that nobody compares is one in which the databases may drift: a new one is named in `dump`."""
    with open_sides() as sides:
        for side in sides:
            assert tables_of(side.reader.url) - NOT_COMPARED == set(TABLES)
