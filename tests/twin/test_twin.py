"""The two databases and the reference model cannot drift: every step is compared, answer by answer and row by row."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from detent.errors import DetentError
from detent.model.records import Cancelled
from detent.store.contract import Store
from detent.testing.postgres import Cluster
from detent.testing.stores import turnable_store
from tests.twin.dump import NOT_COMPARED, TABLES, Reader, tables_of
from tests.twin.machine import Side
from tests.twin.machine_keeping import WholeTwin

EXAMPLES = int(os.environ.get("DETENT_TWIN_EXAMPLES", "40"))
STEPS = 30


OpenSides = Callable[[], AbstractContextManager[list[Side]]]


@pytest.fixture
def open_sides(postgres_cluster: Cluster, postgres_url: str, tmp_path: Path) -> OpenSides:
    """Opens an empty database of each kind: PostgreSQL's as a copy of one that is ready, since that is quicker."""
    with turnable_store(postgres_url):
        pass
    template = postgres_url.rpartition("/")[2]
    numbers = itertools.count(1)

    @contextmanager
    def opened() -> Iterator[list[Side]]:
        name = f"{template}_{next(numbers)}"
        sqlite = f"sqlite:///{tmp_path}/{name}.db"
        postgres = postgres_cluster.create_database(name, template=template)
        try:
            with _side("SQLite", sqlite) as left, _side("PostgreSQL", postgres) as right:
                yield [left, right]
        finally:
            postgres_cluster.drop_database(name)

    return opened


@contextmanager
def _side(name: str, url: str) -> Iterator[Side]:
    with turnable_store(url) as (store, clock), closing(Reader(url)) as reader:
        yield Side(name, store, clock, reader)


@pytest.mark.timeout(600 if EXAMPLES <= 40 else 0)  # finding the smallest way to a difference takes its time
def test_model_and_databases_agree_after_every_step(open_sides: OpenSides) -> None:
    """J1-J7, J10-J14, B5, C1, C4, E1-E5, R1, W3: any sequence of verbs gives the same answers, and leaves the
    same rows everywhere."""
    make: Any = lambda: WholeTwin(open_sides)  # noqa: E731 - a factory serves as well as the class it is typed as
    run_state_machine_as_test(
        make,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


class Forgetful:
    """A store that does everything right, but for one column."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getattr__(self, verb: str) -> Any:
        return getattr(self.store, verb)

    def job_cancel(self, ids: Sequence[int], actor: str, reason: str | None = None) -> list[Cancelled | DetentError]:
        return self.store.job_cancel(ids, actor)


def test_a_store_that_forgets_one_column_is_noticed(tmp_path: Path) -> None:
    """The comparison itself: a reason that is not kept is found."""
    numbers = itertools.count(1)

    @contextmanager
    def opened() -> Iterator[list[Side]]:
        with _side("forgetful", f"sqlite:///{tmp_path}/{next(numbers)}.db") as side:
            yield [side._replace(store=cast(Store, Forgetful(side.store)))]

    make: Any = lambda: WholeTwin(opened)  # noqa: E731
    with pytest.raises(AssertionError, match="after job_cancel forgetful"):
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
