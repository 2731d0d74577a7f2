"""Jobs that fail, in Sentry: `python examples/libraries/sentry_errors.py`. Nothing is sent: the transport is local."""

from __future__ import annotations

import tempfile
from typing import Any

import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from detent import Context, Detent, Retry
from detent.integrations.sentry import report_failures
from detent.testing.harness import Harness

app = Detent("sqlite:///shop.db")
reported: list[Any] = []


class LocalTransport(Transport):
    """Keeps what it is given. A program of yours passes its `dsn` instead of a transport."""

    def capture_envelope(self, envelope: Envelope) -> None:
        """Keep the event."""
        if (event := envelope.get_event()) is not None:
            reported.append(event)


sentry_sdk.init(dsn="http://key@localhost/1", transport=LocalTransport, default_integrations=False)
report_failures(app)


@app.task(name="charge", retry=Retry(2))
def charge(ctx: Context, order_id: int) -> None:
    """Fail in every attempt."""
    raise ConnectionError(f"the bank did not answer for order {order_id}")


@app.task(name="ship", retry=Retry(0))
def ship(ctx: Context, order_id: int) -> None:
    """Succeed, and report something on the way."""
    sentry_sdk.capture_message(f"order {order_id} is late")


def main() -> None:
    """Run three jobs, on a temporary database. The worker of the last one dies."""
    with tempfile.TemporaryDirectory(prefix="detent-sentry-") as directory:
        harness = Harness(f"sqlite:///{directory}/shop.db")
        harness.use(app)
        app.enqueue(charge.call(order_id=7), tenant="acme")
        ship.enqueue(order_id=8)
        harness.crash(ship.enqueue(order_id=9), at="started")
        harness.work(skip=True)
        harness.close()
    for event in reported:
        tags = event["tags"]
        what = (
            event["exception"]["values"][0] if "exception" in event else {"type": "message", "value": event["message"]}
        )
        place = what["stacktrace"]["frames"][-1]["function"] if "stacktrace" in what else ""
        print(f"job {tags['detent.job']} attempt {tags['detent.attempt']} {event['transaction']} {place}".rstrip())
        print(f"  {what['type']}: {what['value']}")


if __name__ == "__main__":
    main()
