"""Orders and their jobs in one transaction, with a Session and with an AsyncSession: `python orders.py`."""

from __future__ import annotations

import asyncio
import sys

from sqlalchemy import create_engine, func, select
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from detent import Context, Detent

app = Detent()  # the database is that of DETENT_DATABASE_URL
URL = app.settings.database_url.replace("postgresql://", "postgresql+psycopg://")
engine = create_engine(URL)
async_engine = create_async_engine(URL.replace("sqlite:", "sqlite+aiosqlite:"))


class Base(DeclarativeBase):
    """The tables of the shop, in the same database as the jobs."""


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    state: Mapped[str] = mapped_column(default="placed")


@app.task
def confirm(ctx: Context, order_id: int) -> str:
    """Change the order with the ORM. Its new state and the success of the job are one commit."""
    with Session(engine) as session, ctx.commit(session):
        order = session.get_one(Order, order_id)
        order.state = "confirmed"
        session.flush()
        return f"{order.item} is confirmed"


def place(item: str) -> None:
    """Write an order and its job: both are there, or neither."""
    with Session(engine) as session, session.begin():
        session.add(order := Order(item=item))
        session.flush()  # the order gets its id
        app.using(session).enqueue(confirm.call(order.id))
        if item == "unicorn":
            raise ValueError("sold out")


async def place_async(item: str) -> None:
    """The same with an AsyncSession."""
    async with AsyncSession(async_engine) as session, session.begin():
        session.add(order := Order(item=item))
        await session.flush()
        await app.aio.using(session).enqueue(confirm.call(order.id))
        if item == "unicorn":
            raise ValueError("sold out")


async def main() -> None:
    async with app.aio:
        await asyncio.to_thread(Base.metadata.create_all, engine)
        for item in ("lamp", "unicorn"):
            try:
                await asyncio.to_thread(place, item)
                await place_async(item)
            except ValueError as error:
                print(f"{item}: {error}")
        try:
            await place_async("unicorn")
        except ValueError as error:
            print(f"unicorn: {error}")
        async with AsyncSession(async_engine) as session:
            orders = await session.scalar(select(func.count()).select_from(Order))
        print(f"{orders} orders and {len(await app.aio.jobs.list())} jobs")
        await async_engine.dispose()
        engine.dispose()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
