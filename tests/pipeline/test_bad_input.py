"""What a source, a plan or a person can get wrong: each is a clear error, and nothing is half done."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest

from detent import Page, Partition
from detent.app.detent import Detent
from detent.errors import InvalidArguments, InvalidInput, InvalidSetting, NotFound
from detent.testing.harness import Harness
from detent.testing.stores import is_sqlite, plain_connection
from tests.pipeline.stones import Stones, canonical, declare, worked_off


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (lambda: None, "a value of type NoneType"),
        (lambda: 7, "a value of type int"),
        (lambda: "ab", "a value of type str"),
        (lambda: [Partition("a"), Partition("a")], "the partition 'a' twice"),
        (lambda: [Partition("")], "an empty string"),
        (lambda: ["a"], "a str in it"),
        (lambda: [Partition("a", {"x": float("nan")})], "payload of 'a'"),
        (lambda: (Partition(str(n)) for n in range(30_000)), "more than 20000 partitions"),
    ],
    ids=["none", "number", "text", "twice", "empty key", "no partition", "no JSON", "too many"],
)
def test_a_plan_that_is_none(harness: Harness, plan: Callable[[], Any], said: str) -> None:
    """P1: the run fails at once with what is wrong; no partition, no job is left."""
    source = declare(harness.app)
    source.odd_plan = plan
    run = worked_off(harness, Stones())
    assert run.state == "failed"
    assert said in run.error
    assert run.counts["partitions"] == 0
    assert list(run.partitions()) == []
    assert source.plans == [None]
    (alert,) = harness.store.alert_list("firing")
    assert (alert.policy, said in alert.message) == ("pipeline_failed", True)


def test_a_plan_without_partitions(harness: Harness) -> None:
    """P1, P6: there is nothing to fetch: the run completes, the watermark moves, and nothing is retired."""
    source = declare(harness.app)
    source.put(range(3), 100, harness.clock.now())
    worked_off(harness, Stones())
    source.odd_plan = list
    run = worked_off(harness, Stones(), full=True)
    assert (run.state, run.counts["partitions"]) == ("completed", 0)
    assert source.retired == []
    assert harness.app.watermarks.get("stones") == run.captured_at


def test_a_plan_that_raises_is_made_again(harness: Harness) -> None:
    """P1, J9: as often as a task is retried."""
    source = declare(harness.app)

    def raises() -> Any:
        raise ConnectionError("no such source")

    source.odd_plan = raises
    run = worked_off(harness, Stones())
    assert (run.state, len(source.plans)) == ("failed", 4)
    assert "no such source" in run.error


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (lambda part, offset: None, "a value of type NoneType"),
        (lambda part, offset: [("a", 1)], "a value of type list"),
        (lambda part, offset: Page(records=[("a", 1)], next=offset), "the offset of this page"),
        (lambda part, offset: Page(records=["a"]), "a record that is 'a'"),  # type: ignore[list-item]
        (lambda part, offset: Page(records=[("", 1)]), "an empty string"),
        (lambda part, offset: Page(records=[(7, 1)]), "a value of type int"),  # type: ignore[list-item]
        (lambda part, offset: Page(records=[("a", {1, 2})]), "record 'a'"),
        (lambda part, offset: Page(records=[("a\0", 1)]), "record key"),
        (lambda part, offset: Page(records=[], next={1}), "next offset"),
    ],
    ids=["none", "a list", "does not move", "no pair", "empty key", "a number", "no JSON", "NUL", "no offset"],
)
def test_a_page_that_is_none(harness: Harness, page: Callable[..., Any], said: str) -> None:
    """P2: its partition fails at once with what is wrong, and nothing of the page is staged."""
    source = declare(harness.app)
    source.odd_page = page
    run = worked_off(harness, Stones())
    assert run.state == "failed"
    failed = list(run.partitions("failed"))
    assert len(failed) == 2
    assert all(said in (part.error or "") for part in failed)
    assert (run.counts["staged"], canonical(harness.url)) == (0, {})


def test_a_page_without_end(harness: Harness) -> None:
    """P2, G6: records may come from a generator, and one that never stops is stopped."""
    source = declare(harness.app)
    object.__setattr__(harness.app.settings, "page_records_max", 100)
    source.odd_page = lambda part, offset: Page(records=((str(n), n) for n in count()))  # type: ignore[arg-type]
    run = worked_off(harness, Stones())
    assert (run.state, run.counts["staged"]) == ("failed", 0)
    assert "more than 100 records" in (next(run.partitions("failed")).error or "")


def test_pages_that_go_in_a_circle_end(harness: Harness) -> None:
    """P2, G6: everything has a limit."""
    source = declare(harness.app)
    object.__setattr__(harness.app.settings, "pages_max", 5)
    source.odd_page = lambda part, offset: Page(records=[("a", 1)], next=1 - offset)
    run = worked_off(harness, Stones())
    assert run.state == "failed"
    assert "more than 5 pages" in (next(run.partitions("failed")).error or "")


def test_empty_pages_and_keys_that_repeat(harness: Harness) -> None:
    """P2: an empty page moves on; of a key that comes twice, on one page or two, the last record counts, once."""
    source = declare(harness.app)
    source.parts = 1
    pages = {
        0: Page(records=[], next=1),
        1: Page(records=[("x", {"price": 1}), ("x", {"price": 2}), ("y", {"price": 5})], next=2),
        2: Page(records=[("y", {"price": 9})], next=None),
    }
    source.odd_page = lambda part, offset: pages[offset]
    run = worked_off(harness, Stones())
    assert run.state == "completed"
    assert (run.counts["records"], run.counts["staged"], run.counts["consolidated"]) == (3, 2, 2)
    assert canonical(harness.url) == {"x": (12, 1, 0), "y": (19, 1, 0)}


def test_a_watermark_that_cannot_be_saved(harness: Harness) -> None:
    """P5: run and watermark move together or not at all; in the end the run fails, and says why."""
    source = declare(harness.app)
    source.put(range(3), 100, harness.clock.now())
    harness.work()
    break_ = (
        "CREATE TRIGGER broken BEFORE INSERT ON detent_watermark BEGIN SELECT RAISE(ABORT, 'the disk is odd'); END"
        if is_sqlite(harness.url)
        else "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the disk is odd'; END $$;"
        "CREATE TRIGGER broken BEFORE INSERT ON detent.watermark FOR EACH ROW EXECUTE FUNCTION broken()"
    )
    with closing(plain_connection(harness.url)) as connection:
        connection.execute(break_)
        connection.commit()
    run = worked_off(harness, Stones())
    with closing(plain_connection(harness.url)) as connection:
        connection.execute("DROP TRIGGER broken" + ("" if is_sqlite(harness.url) else " ON detent.watermark"))
        connection.commit()
    assert run.state == "failed"
    assert "the disk is odd" in run.error
    assert harness.app.watermarks.get("stones") is None
    assert len(canonical(harness.url)) == 3
    (alert,) = harness.store.alert_list("firing")
    assert alert.policy == "consolidation_failed"
    again = worked_off(harness, Stones())
    assert (again.state, again.is_full) == ("completed", True)


def test_a_statement_that_fails_in_consolidate_undoes_its_portion(harness: Harness) -> None:
    """C2, P4: also where the error was caught; nothing of the portion stays."""
    app = harness.app

    @app.pipeline(name="careless")
    @dataclass
    class Careless(Stones):
        def consolidate(self, tx: Any, records: list[tuple[str, Any]]) -> None:
            super().consolidate(tx, records)
            try:
                tx.execute("INSERT INTO nowhere VALUES (1)")
            except Exception:
                return

    source = declare(app)
    source.put(range(3), 100, harness.clock.now())
    run = app.runs.start(Careless())
    for _ in range(6):
        harness.work()
        harness.clock.advance(70)
    assert run.refresh().state == "failed"
    assert canonical(harness.url) == {}


def test_declarations_that_cannot_work(harness: Harness) -> None:
    """U1: refused when the pipeline is declared, with what would be allowed."""
    app = harness.app

    class NoDataclass(Stones.__base__):  # type: ignore[name-defined,misc]
        plan = page = consolidate = lambda self, *_: None

    with pytest.raises(InvalidSetting, match="no dataclass"):
        app.pipeline(NoDataclass)

    @dataclass
    class NoPage:
        def plan(self, since: Any) -> Any: ...

    with pytest.raises(InvalidSetting, match="without page"):
        app.pipeline(NoPage)  # type: ignore[type-var]

    @dataclass
    class Narrow(Stones):
        def page(self, partition: Partition) -> Page:  # type: ignore[override]
            raise NotImplementedError

    with pytest.raises(InvalidSetting, match=r"page\(self, partition, offset\)"):
        app.pipeline(Narrow)  # type: ignore[type-var]
    for options in ({"tolerate": -1}, {"tolerate": 1.5}, {"overlap": -1}, {"hold": "x"}, {"limit_key": 7}):
        with pytest.raises(InvalidSetting):
            app.pipeline(**options)(Stones)
    declare(app)
    with pytest.raises(InvalidInput, match="twice"):
        app.pipeline(Stones)
    with pytest.raises(InvalidInput, match="one pipeline for each watermark"):
        app.pipeline(watermark="stones", name="other")(Stones)


def test_starts_that_cannot_work(harness: Harness) -> None:
    """U1: nothing is written."""
    declare(harness.app)
    app: Detent = harness.app
    with pytest.raises(InvalidInput, match="a value of a class under @app"):
        app.runs.start(object())  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments):
        app.runs.start(Stones(margin="much"))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        app.runs.start(Stones(), tenant="a\0b")
    with pytest.raises(NotFound):
        app.runs.start_named("nothing")
    with pytest.raises(InvalidArguments, match="found the field 'margins'; allowed: margin"):
        app.runs.start_named("tests.pipeline.stones.Stones", '{"margins": 7}')
    with pytest.raises(InvalidInput):
        app.runs.list(kind="pipeline", state="flying")
    assert app.runs.list(kind="pipeline") == []
