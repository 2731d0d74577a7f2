"""A deploy, from a push to a page: `python examples/deploy/demo.py [--database URL]`. The README beside it says more.

Everything happens in a directory that is gone afterwards, unless a database is named.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

from detent import Detent, IncomingWebhook, OpsRun, WebhookDelivery
from detent.ops.github_push import queue_push, read_push

HERE = Path(__file__).parent
SECRET = "known to both sides"
GOOD, BROKEN = "1f" * 20, "2e" * 20
PAGES = {
    GOOD: {"index": "Rings & more\nWe have <rings>.\n\nAnd more.\n", "about": "About us\nTwo people.\n"},
    BROKEN: {"index": "\nA page without a title.\n"},
}


class Quiet(SimpleHTTPRequestHandler):
    """The front door, without a word for every look."""

    def log_message(self, format: str, *values: object) -> None: ...


def declare_webhook(app: Detent) -> IncomingWebhook:
    """Declare the webhook. `detent server` takes its deliveries at /hooks/push; here they are received directly."""

    @app.webhook("push", secret=SECRET, verify="github")
    def deploy(delivery: WebhookDelivery) -> OpsRun | None:
        push = read_push(delivery.id, delivery.data)
        return None if push is None else queue_push(app.ops, push, env="staging")

    return deploy


def told(app: Detent, webhook: IncomingWebhook, delivery: str, sha: str) -> OpsRun:
    """GitHub tells of a push, twice: that happens."""
    body = json.dumps(
        {"ref": "refs/heads/main", "after": sha, "repository": {"full_name": "acme/site"}, "pusher": {"name": "ana"}}
    ).encode()
    headers = webhook.signed(body, delivery, "push")
    first, again = webhook.receive(headers, body), webhook.receive(headers, body)
    print(f"push of {sha[:7]}: delivered twice, queued as {first.runs[0]} and {again.runs[0]}")
    assert (first.runs, first.created, again.created) == (again.runs, True, False)
    return app.ops.get(first.runs[0])


@contextmanager
def front_door(place: Path) -> Iterator[str]:
    """Serves whatever is current, on a port of its own."""
    served = place / "current"
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def play(app: Detent, directory: Path) -> None:
    """Two pushes: one that is deployed, one that cannot be built."""
    site, place = directory / "site", directory / "place"
    for sha, pages in PAGES.items():
        (site / sha).mkdir(parents=True)
        for name, text in pages.items():
            (site / sha / f"{name}.txt").write_text(text)
    place.mkdir()
    webhook = declare_webhook(app)
    runs = [told(app, webhook, "delivery-1", GOOD), told(app, webhook, "delivery-2", BROKEN)]
    url = app.settings.database_url
    with front_door(place) as front:
        environment = os.environ | {
            "OPS_DOOR": "psql" if url.startswith("postgresql") else "detent",
            "OPS_DETENT": f"{sys.executable} -m detent.cli",
            "OPS_WORKER": "worker-001",
            "OPS_ATTEMPTS": "2",
            "OPS_BACKOFF": "0",
            "DATABASE_URL": url,
            "DETENT_DATABASE_URL": url,
            "SITE": str(site),
            "PLACE": str(place),
            "FRONT": front,
        }
        worker = subprocess.Popen(
            ["bash", HERE / "worker.sh", "--drain", HERE / "workflow.sh"], env=environment, stderr=subprocess.DEVNULL
        )
        try:
            for run in runs:
                for event in app.ops.follow(run):
                    print(f"  {run.id}  {event.level:<7}  {event.message}")
            worker.wait(240)
        finally:
            worker.terminate()
            worker.wait()
        with urlopen(f"http://{front}/index.html") as page:
            served = page.read().decode()
    deployed, failed = (app.ops.get(run) for run in runs)
    print(f"{deployed.id} is {deployed.state}: {json.dumps(deployed.metadata)}")
    print(f"{failed.id} is {failed.state}: {failed.metadata['error']} in step {failed.metadata['step']}")
    assert deployed.state == "success"
    assert deployed.metadata["health_check"] == "passed"
    assert (failed.state, failed.metadata["step"], failed.metadata["retry_count"]) == ("failed", "build", 1)
    assert "<h1>Rings &amp; more</h1>" in served
    assert f"{deployed.id}, {GOOD}" in served
    assert app.record.verify() == []
    print(f"what is served is what {deployed.id} built, and the record is healthy")


def main() -> None:
    """On the database that was named, or on a SQLite file of its own."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--database", metavar="URL")
    with tempfile.TemporaryDirectory(prefix="detent-deploy-") as directory:
        url = arguments.parse_args().database or f"sqlite:///{directory}/deploy.db"
        with Detent(url) as app:
            app.migrate()
            play(app, Path(directory))


if __name__ == "__main__":
    main()
