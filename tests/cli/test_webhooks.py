"""`detent webhooks`: what is declared, and a test delivery to a real server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from detent import Detent

APP = """
from detent import Call, Context, Detent, WebhookDelivery

app = Detent()

@app.task(name="ship")
def ship(ctx: Context, order: int) -> None: ...

@app.webhook("orders", secret="env:ORDERS_SECRET", verify="github")
def take(delivery: WebhookDelivery) -> Call[None]:
    return ship.call(delivery.data["order"])

@app.webhook("silent", secret="env:NO_SUCH_SECRET", verify="stripe")
def silent(delivery: WebhookDelivery) -> None: ...
"""
SECRET = "known to both sides"


@contextmanager
def server(directory: Path, environment: dict[str, str]) -> Iterator[str]:
    command = [sys.executable, "-m", "detent.cli", "server", "hooked:app", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=directory, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.send_signal(signal.SIGTERM)


def test_a_test_delivery_reaches_the_server(ready_url: str, tmp_path: Path) -> None:
    """U2: it is signed with the secret of the declaration, and sent again it finds its job."""
    (tmp_path / "hooked.py").write_text(APP)
    (tmp_path / "order.json").write_text('{"order": 7}')
    environment = os.environ | {"DETENT_DATABASE_URL": ready_url, "ORDERS_SECRET": SECRET, "PYTHONPATH": str(tmp_path)}

    def detent(*arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "detent.cli", "webhooks", *arguments, "--app", "hooked:app", "--json"]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    code, listed = detent("list")
    assert code == 0
    assert [(one["name"], one["is_on"], one["path"]) for one in json.loads(listed)] == [
        ("orders", True, "/hooks/orders"),
        ("silent", False, "/hooks/silent"),
    ]
    assert SECRET not in listed
    assert detent("send", "none", "order.json")[0] == 3
    assert detent("send", "orders", "none.json")[0] == 2
    with server(tmp_path, environment) as url:
        statuses = []
        for _ in range(2):
            code, answer = detent("send", "orders", "order.json", "--to", url, "--delivery-id", "d-1")
            assert code == 0
            statuses.append(json.loads(answer)["status"])
        assert statuses == [202, 200]
    with Detent(ready_url) as app:
        assert [job.payload for job in app.jobs.list()] == [{"order": 7}]
