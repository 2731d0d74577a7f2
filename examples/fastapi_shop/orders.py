"""The tables and tasks of a shop. A worker needs only this module: `detent worker orders:app`."""

from __future__ import annotations

from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from detent import Context, Detent

app = Detent()  # the database is that of DETENT_DATABASE_URL
engine = create_engine(app.settings.database_url.replace("postgresql://", "postgresql+psycopg://"))


class Base(DeclarativeBase):
    """The tables of the shop, in the same database as the jobs."""


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    state: Mapped[str] = mapped_column(default="placed")


@app.task(queue="orders")
def confirm(ctx: Context, order_id: int) -> str:
    """Confirm an order. The new state and the success of the job are one commit."""
    with ctx.commit() as tx:
        tx.execute("UPDATE orders SET state = 'confirmed' WHERE id = :id", {"id": order_id})
    return f"order {order_id} is confirmed"


@app.task(queue="mail")
async def remind(ctx: Context, order_id: int) -> str:
    """Stand in for a mail."""
    ctx.event("reminded", order_id=order_id)
    return f"reminded of order {order_id}"
