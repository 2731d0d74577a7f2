"""Jobs in a transaction of asyncpg: `python examples/libraries/asyncpg_orders.py`.

DETENT_DATABASE_URL names the database, on PostgreSQL.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import asyncpg

from detent import Context, Detent

app = Detent()


@app.task(name="mail")
async def mail(ctx: Context, order_id: int) -> str:
    """Mail the customer. The note about it is committed with the end of the job, once."""
    async with ctx.commit() as tx:
        await tx.execute("UPDATE shop_orders SET state = 'mailed' WHERE id = :id", {"id": order_id})
    return f"mailed {order_id}"


async def play() -> None:
    """Place two orders, each with its job in one transaction. The second transaction is rolled back."""
    url = app.settings.database_url
    async with asyncpg.create_pool(url, min_size=1, max_size=2) as pool, pool.acquire() as connection:
        await connection.execute("CREATE TABLE shop_orders (id integer PRIMARY KEY, state text NOT NULL)")
        async with connection.transaction():
            await connection.execute("INSERT INTO shop_orders VALUES (7, 'placed')")
            job = await app.aio.using(connection).enqueue(mail.call(order_id=7), key="mail:7")
            assert await app.aio.jobs.list() == []  # not committed yet
        try:
            async with connection.transaction():
                await connection.execute("INSERT INTO shop_orders VALUES (8, 'placed')")
                await app.aio.using(connection).enqueue(mail.call(order_id=8), key="mail:8")
                raise ConnectionError("the customer went away")
        except ConnectionError as error:
            print(f"rolled back: {error}")
        print(f"jobs: {[one.payload for one in await app.aio.jobs.list()]}")
        await asyncio.to_thread(work)
        orders = [tuple(order) for order in await connection.fetch("SELECT id, state FROM shop_orders")]
        print(f"orders: {orders}; {(await job.refresh()).result}")
        await connection.execute("DROP TABLE shop_orders")
    app.close()


def work() -> None:
    """Run a worker until nothing is left to do."""
    command = [sys.executable, "-m", "detent.cli", "worker", f"{Path(__file__).stem}:app", "--drain"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=100)


if __name__ == "__main__":
    asyncio.run(play())
