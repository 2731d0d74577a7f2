"""A shop with Flask: `flask --app shop run`, and a worker beside it: `detent worker shop:jobs`."""

from __future__ import annotations

from flask import Flask, request
from flask.typing import ResponseReturnValue
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from detent import Context, Detent
from detent.errors import KeyConflict, NotFound

jobs = Detent()  # the database is that of DETENT_DATABASE_URL; nothing is opened yet
engine = create_engine(jobs.settings.database_url.replace("postgresql://", "postgresql+psycopg://"))


class Base(DeclarativeBase):
    """The tables of the shop, in the same database as the jobs."""


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    state: Mapped[str] = mapped_column(default="placed")


@jobs.task
def confirm(ctx: Context, order_id: int) -> str:
    """Confirm an order. The new state and the success of the job are one commit."""
    with ctx.commit() as tx:
        tx.execute("UPDATE orders SET state = 'confirmed' WHERE id = :id", {"id": order_id})
    return f"order {order_id} is confirmed"


def create_app() -> Flask:
    """Return the web application. The tables are made if they are missing."""
    site = Flask(__name__)
    jobs.migrate()
    Base.metadata.create_all(engine)

    @site.post("/orders")
    def place() -> ResponseReturnValue:
        """Write the order and its job in one transaction: both are there, or neither."""
        asked = request.get_json()
        with Session(engine) as session, session.begin():
            session.add(order := Order(item=asked["item"]))
            session.flush()  # the order gets its id
            job = jobs.using(session).enqueue(confirm.call(order.id), key=asked.get("key"))
            placed = {"order": order.id, "job": str(job.id)}
        return placed, 201

    @site.get("/orders/<int:order_id>")
    def show(order_id: int) -> ResponseReturnValue:
        with Session(engine) as session:
            order = session.get(Order, order_id)
            return ({"item": order.item, "state": order.state}, 200) if order else ({"error": "no such order"}, 404)

    @site.get("/jobs/<int:job_id>")
    def show_job(job_id: int) -> ResponseReturnValue:
        job = jobs.jobs.get(job_id)
        return {"state": job.state, "why": job.why()}

    @site.errorhandler(KeyConflict)
    def conflict(error: KeyConflict) -> ResponseReturnValue:
        return {"error": str(error)}, 409

    @site.errorhandler(NotFound)
    def not_found(error: NotFound) -> ResponseReturnValue:
        return {"error": str(error)}, 404

    return site
