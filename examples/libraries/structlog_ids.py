"""Ids of jobs in the logs of structlog: `python examples/libraries/structlog_ids.py`."""

from __future__ import annotations

import asyncio
import tempfile

import structlog

from detent import Context, Detent
from detent.integrations.structlog import add_job_ids
from detent.testing.harness import Harness

structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        add_job_ids,
        structlog.processors.add_log_level,
        structlog.processors.JSONRenderer(sort_keys=True),
    ]
)
log = structlog.get_logger()
app = Detent("sqlite:///shop.db")


@app.task(name="welcome")
async def welcome(ctx: Context, name: str) -> None:
    """Log two lines; another job logs between them."""
    log.info("writing", name=name)
    await asyncio.sleep(0)
    await asyncio.to_thread(log.warning, "written")


def main() -> None:
    """Run two jobs, on a temporary database."""
    with tempfile.TemporaryDirectory(prefix="detent-structlog-") as directory:
        harness = Harness(f"sqlite:///{directory}/shop.db")
        harness.use(app)
        app.enqueue(welcome.call(name="Ana"), tenant="acme", correlation_id="order-7")
        welcome.enqueue(name="Ben")
        log.info("outside of a job")
        asyncio.run(harness.awork())
        harness.close()


if __name__ == "__main__":
    main()
