"""A nightly run as a graph of plain tasks: two extracts, the facts built from them, and what follows.

`detent worker nightly:app` runs it; `demo.py` starts it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from detent import Context, Detent, Fatal, Graph, Node

app = Detent()  # the database of DETENT_DATABASE_URL


class Extract(msgspec.Struct):
    """What was read from a table."""

    table: str
    rows: int


@app.task
def extract(ctx: Context, table: str, day: str) -> Extract:
    source = Path(f"{table}-{day}.csv")
    if not source.exists():
        raise Fatal(f"{source} has not arrived")  # no retry would help: it waits for a person
    return Extract(table, len(source.read_text().splitlines()))


@app.task
def build_facts(ctx: Context, day: str) -> int:
    return ctx.result_of("orders", Extract).rows * ctx.result_of("users", Extract).rows


@app.task
def publish(ctx: Context, day: str) -> str:
    return f"{ctx.result_of('facts', int)} facts of {day}"


@app.task
def report(ctx: Context, day: str) -> str:
    return f"the facts of {day} have ended"


def nightly(day: str) -> tuple[Graph, list[Node[Any]]]:
    """Describe the run of a day. Its key is the day, so it cannot be started twice."""
    graph = app.graph("nightly", key=day)
    orders = graph.add(extract.call(table="orders", day=day), name="orders")
    users = graph.add(extract.call(table="users", day=day), name="users")
    facts = graph.add(build_facts.call(day=day), after=[orders, users], name="facts")
    last = graph.add(publish.call(day=day), after=[facts], name="publish")
    told = graph.add(report.call(day=day), after_end=[facts], name="report")
    return graph, [orders, users, facts, last, told]
