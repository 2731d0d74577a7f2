"""`app.graph`: what is refused before anything is written, and a graph that runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from detent import Call, Context, Detent, Fatal, Graph, Node
from detent.client import graph as graphs
from detent.errors import InvalidInput, KeyConflict, WrongPlace
from detent.testing.harness import Harness


class Extract(msgspec.Struct):
    """What a node returns."""

    table: str
    rows: int


@pytest.fixture
def harness(sqlite_url: str) -> Iterator[Harness]:
    with closing(Harness(sqlite_url)) as one:
        yield one


@pytest.fixture
def app(harness: Harness) -> Detent:
    """Tasks for nodes; `build` fails while `broken` is true."""
    app = harness.app
    broken = [True]

    @app.task(name="extract")
    def extract(ctx: Context, table: str) -> Extract:
        return Extract(table, len(table))

    @app.task(name="build")
    def build(ctx: Context, from_node: str = "orders") -> int:
        return ctx.result_of(from_node, Extract).rows + ctx.result_of("users", Extract).rows

    @app.task(name="publish")
    def publish(ctx: Context) -> str:
        if broken[0]:
            broken[0] = False
            raise Fatal("not today")
        return f"{ctx.result_of('facts')} rows"

    @app.task(name="once", unique="pending")
    def once(ctx: Context) -> None: ...

    return app


def call(app: Detent, name: str, **arguments: Any) -> Call[Any]:
    return app.find_task(name).call(**arguments)


def nightly(app: Detent, key: str | None = None, *, from_node: str = "orders") -> tuple[Graph, list[Node[Any]]]:
    graph = app.graph("nightly", key=key)
    orders = graph.add(call(app, "extract", table="orders"), name="orders")
    users = graph.add(call(app, "extract", table="users"), name="users")
    facts = graph.add(call(app, "build", from_node=from_node), after=[orders, users], name="facts")
    last = graph.add(call(app, "publish"), after=[facts], name="publish")
    return graph, [orders, users, facts, last]


def test_a_graph_runs_waits_for_a_repair_and_goes_on(harness: Harness, app: Detent) -> None:
    """Nodes read results of others; a node in quarantine keeps the graph waiting, and both say why."""
    graph, nodes = nightly(app)
    job = graph.start()
    orders, users, facts, publish = (app.jobs.get(node.id) for node in nodes)
    assert facts.why() == f"it waits for node `orders` (job {orders.id}), which is pending and for one more node"
    assert job.why() == "it waits for its nodes: 0 of 4 have ended"
    harness.work()
    assert (facts.refresh().result, publish.refresh().state, job.refresh().state) == (11, "quarantined", "pending")
    assert job.why() == (
        f"it waits for its nodes: 3 of 4 have ended; node `publish` (job {publish.id}), which is quarantined: "
        "detent.declare.signals.Fatal: not today"
    )
    publish.retry(actor="ana")
    harness.work()
    assert publish.refresh().result == "11 rows"
    assert (job.refresh().state, job.why()) == ("succeeded", "all its 4 nodes have succeeded")
    assert [child.parent_id for child in (orders.refresh().row, users.refresh().row)] == [job.id, job.id]


def test_the_same_key_is_the_same_run(app: Detent) -> None:
    first, nodes = nightly(app, "2026-11-18")
    job = first.start()
    assert (job.created, first.start().created, first.start().id) == (True, False, job.id)
    again, same = nightly(app, "2026-11-18")
    assert (again.start().id, [node.id for node in same]) == (job.id, [node.id for node in nodes])
    other, _ = nightly(app, "2026-11-18", from_node="users")
    with pytest.raises(KeyConflict):
        other.start()
    assert nightly(app, "2026-11-19")[0].start().id != job.id
    assert len(app.jobs.list(task="detent.graph")) == 2


def test_a_result_that_is_not_there_is_refused_by_name(harness: Harness, app: Detent) -> None:
    for asked, told in (("nobody", "there is no node"), ("publish", "while that node is pending")):
        graph, nodes = nightly(app, from_node=asked)
        graph.start()
        harness.work()
        failed = app.jobs.get(nodes[2].id)
        assert failed.attempt == 1
        assert told in (failed.executions()[0].error or ""), failed.executions()[0].error


Mistake = Callable[[Detent, Graph, Node[Any]], object]
MISTAKES: dict[str, tuple[Mistake, str]] = {
    "two nodes of one name": (
        lambda app, graph, a: graph.add(call(app, "publish"), name="a"),
        "two nodes 'a'",
    ),
    "a node of another graph": (
        lambda app, graph, a: app.graph("other").add(call(app, "publish"), after=[a]),
        "node 'a' of graph 'g', which is another one",
    ),
    "a name instead of a node": (
        lambda app, graph, a: graph.add(call(app, "publish"), after=["a"]),  # type: ignore[list-item]
        "nodes, as graph.add() returns them",
    ),
    "a node instead of a list": (
        lambda app, graph, a: graph.add(call(app, "publish"), after=a),  # type: ignore[arg-type]
        "a list of nodes",
    ),
    "a task that is unique": (
        lambda app, graph, a: graph.add(call(app, "once")),
        "task 'once', which is unique",
    ),
    "no call": (lambda app, graph, a: graph.add(app.find_task("publish")), "task.call(...)"),  # type: ignore[arg-type]
    "an empty name": (lambda app, graph, a: graph.add(call(app, "publish"), name=""), "name"),
    "a name of the graph that is too long": (lambda app, graph, a: app.graph("x" * 201), "graph"),
    "no nodes": (lambda app, graph, a: app.graph("empty").start(), "at least one node"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_refused_before_anything_is_written(app: Detent, mistake: str) -> None:
    graph = app.graph("g")
    first = graph.add(call(app, "publish"), name="a")
    make, told = MISTAKES[mistake]
    with pytest.raises(InvalidInput) as caught:
        make(app, graph, first)
    assert told in str(caught.value)
    assert app.jobs.list() == []


def test_too_many_nodes_are_refused(app: Detent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "NODES_MAX", 2)
    graph, publish = app.graph("g"), call(app, "publish")
    for name in ("a", "b"):
        graph.add(publish, name=name)
    with pytest.raises(InvalidInput, match="more than 2 nodes"):
        graph.add(publish, name="c")


def test_nodes_are_added_before_the_start_and_have_ids_after_it(app: Detent) -> None:
    graph = app.graph("g")
    node = graph.add(call(app, "publish"))
    with pytest.raises(WrongPlace, match=r"graph.start\(\) first"):
        _ = node.id
    graph.start()
    assert app.jobs.get(node.id).task == node.name == "publish"
    with pytest.raises(WrongPlace, match=r"before graph\.start"):
        graph.add(call(app, "publish"), name="late")


def test_a_graph_on_an_event_loop(harness: Harness, app: Detent) -> None:
    async def start() -> int:
        graph = app.aio.graph("g")
        first = graph.add(call(app, "extract", table="orders"), name="a")
        graph.add(call(app, "extract", table="users"), name="b", after=[first])
        return (await graph.start()).id

    job_id = asyncio.run(start())
    harness.work()
    assert app.jobs.get(job_id).state == "succeeded"
