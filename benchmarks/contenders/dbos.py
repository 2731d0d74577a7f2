"""DBOS: a queue of workflows, polled every 50 ms instead of every second; a row is written by its transactions."""

from __future__ import annotations

import time
from typing import Any

import sqlalchemy
from dbos import DBOS, DBOSClient, SQLAlchemyDatasource  # type: ignore[import-not-found]

from benchmarks.contenders import board, program

QUEUE = "bench"
POLLING = 0.05
POOL = 16
found: dict[str, Any] = {}


async def _noop(t: float) -> None:
    board.mark(t)


def _write(n: int) -> None:
    found["insert"](n)
    board.mark()


def _insert(n: int) -> None:
    found["source"].sql_session().execute(sqlalchemy.text("INSERT INTO ledger (n) VALUES (:n)"), {"n": n})


noop = DBOS.workflow(name="noop")(_noop)
write = DBOS.workflow(name="write")(_write)


def launch() -> None:
    """The engine, its queue and the source of transactions, in this process."""
    config = {"name": "bench", "system_database_url": program.URL, "sys_db_pool_size": POOL, "log_level": "ERROR"}
    DBOS(config={**config, "application_version": "1", "run_admin_server": False})
    found["source"] = SQLAlchemyDatasource.create(program.URL, engine_kwargs={"pool_size": POOL})
    found["insert"] = found["source"].transaction(_insert)
    DBOS.launch()
    DBOS.register_queue(QUEUE, polling_interval_sec=POLLING)


def prepare(count: int) -> None:
    """Its schema, and the table that jobs write into."""
    launch()
    DBOS.destroy()
    engine = sqlalchemy.create_engine(program.URL.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE ledger (n bigint NOT NULL)"))


def enqueue(count: int, at_once: int, name: str) -> program.Answer:
    """Enqueue `at_once` jobs in each transaction of the caller: there is no call for many jobs."""
    options = {"queue_name": QUEUE, "workflow_name": name}
    client = DBOSClient(system_database_url=program.URL)
    engine = sqlalchemy.create_engine(program.URL.replace("postgresql://", "postgresql+psycopg://"))
    began = time.perf_counter()
    for start in range(0, count, at_once):
        if at_once == 1:
            client.enqueue(options, 0)
            continue
        with engine.begin() as connection:
            for number in range(start, min(start + at_once, count)):
                client.enqueue_in_transaction(connection, options, 0 if name == "noop" else number)
    answer = program.rate(count, began)
    client.destroy()
    return answer


def work(processes: int) -> None:
    """Until stopped."""
    launch()
    while True:
        time.sleep(1)


def pick_up(count: int) -> program.Answer:
    """From another process."""
    client = DBOSClient(system_database_url=program.URL)

    async def send(t: float) -> None:
        client.enqueue({"queue_name": QUEUE, "workflow_name": "noop"}, t)

    return program.pick_up(count, send)


if __name__ == "__main__":
    program.serve(
        {
            "prepare": prepare,
            "one": lambda count: enqueue(count, 1, "noop"),
            "bulk": lambda count: enqueue(count, program.BULK, "noop"),
            "bulk-writes": lambda count: enqueue(count, program.BULK, "write"),
            "work": work,
            "pick-up": pick_up,
        }
    )
