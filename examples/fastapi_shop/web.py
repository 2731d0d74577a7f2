"""The shop over HTTP, with the API and the console of Detent under /detent: `uvicorn web:web`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from fastapi.concurrency import run_in_threadpool
from orders import Base, Order, app, confirm, engine, remind
from pydantic import BaseModel
from sqlalchemy.orm import Session

from detent import TransactionClient
from detent.errors import DetentError
from detent.http.api import build_api
from detent.http.problems import answer_error


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    """Open the database before the first request, and close it after the last one."""
    async with app.aio:
        await run_in_threadpool(Base.metadata.create_all, engine)
        yield
    engine.dispose()


web = FastAPI(lifespan=lifespan)
web.add_exception_handler(DetentError, answer_error)  # KeyConflict is 409, NotFound 404, and so on
web.mount("/detent", build_api(app))


def begin() -> Iterator[Session]:
    """Begin the transaction of a request. It is committed if the function of the request returns."""
    with Session(engine) as session, session.begin():
        yield session


# scope="function" commits before the answer is sent. By default FastAPI commits after it, when a client may already
# have been told of an order that is then lost.
Transaction = Annotated[Session, Depends(begin, scope="function")]


def jobs_of(session: Transaction) -> TransactionClient:
    """Enqueue in the transaction of the request."""
    return app.using(session)


Jobs = Annotated[TransactionClient, Depends(jobs_of, scope="function")]


class NewOrder(BaseModel):
    item: str
    key: str | None = None
    """The same key returns the job that is there."""


class Placed(BaseModel):
    order: int
    job: str


@web.post("/orders", status_code=201)
def place(order: NewOrder, session: Transaction, jobs: Jobs) -> Placed:
    """Write the order and its job in one transaction: both are there, or neither."""
    row = Order(item=order.item)
    session.add(row)
    session.flush()
    job = jobs.enqueue(confirm.call(row.id), key=order.key)
    if order.item == "unicorn":
        raise HTTPException(409, "sold out: the order and its job are rolled back")
    return Placed(order=row.id, job=str(job.id))


@web.get("/orders/{order_id}")
def show(order_id: int, session: Transaction) -> dict[str, str]:
    """Return an order."""
    row = session.get(Order, order_id)
    if row is None:
        raise HTTPException(404, f"there is no order {order_id}")
    return {"item": row.item, "state": row.state}


@web.post("/orders/{order_id}/reminder", status_code=202)
async def remind_of(order_id: int) -> dict[str, str]:
    """Enqueue on Detent's own connection: the job is durable when this returns, and needs no transaction."""
    job = await app.aio.enqueue(remind.call(order_id))
    return {"job": str(job.id)}


@web.get("/jobs/{job_id}")
async def show_job(job_id: int) -> dict[str, str]:
    """Return the state of a job, and why it is in it. A job that is not there is a 404."""
    job = await app.aio.jobs.get(job_id)
    return {"state": job.state, "why": await job.why()}
