"""The examples in `libraries`: Detent beside one other library each, run as a reader would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deadlines import scaled

LIBRARIES = Path(__file__).parents[2] / "examples" / "libraries"
SECONDS_MAX = scaled(100)


def told(example: str, tmp_path: Path, **settings: str) -> str:
    """What an example prints. It leaves nothing behind."""
    (tmp_path / "home").mkdir()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", LIBRARIES / example],
        cwd=tmp_path / "home",
        env=environment | {"TMPDIR": str(tmp_path), **settings},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["home"]
    return done.stdout


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_pydantic_models(tmp_path: Path) -> None:
    """J2: models as arguments and results of a task and a workflow, in a step and in a signal."""
    assert told("pydantic_models.py", tmp_path).splitlines() == [
        "pack.order.lines[0].count: found 0; allowed: greater than 0",
        "Receipt(order_id=7, total=Decimal('28.50'), approved_by='')",
        "Receipt(order_id=7, total=Decimal('180.0'), approved_by='ana')",
    ]


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_structlog_ids(tmp_path: Path) -> None:
    """Every line of a job has its ids, on the loop and on a thread; other lines have none."""
    lines = [json.loads(line) for line in told("structlog_ids.py", tmp_path).splitlines()]
    assert lines[0] == {"event": "outside of a job", "level": "info"}
    ana, ben = ([line for line in lines if line.get("job_id") == job_id] for job_id in (1, 2))
    ids = {"job_id": 1, "attempt": 1, "task": "welcome", "tenant": "acme", "correlation_id": "order-7"}
    assert ana == [
        ids | {"event": "writing", "level": "info", "name": "Ana"},
        ids | {"event": "written", "level": "warning"},
    ]
    assert [line["event"] for line in ben] == ["writing", "written"]


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_sentry_errors(tmp_path: Path) -> None:
    """A job that has failed for good is reported once, with its ids and the place, however often it was tried."""
    assert told("sentry_errors.py", tmp_path).splitlines() == [
        "job 2 attempt 1 ship",
        "  message: order 8 is late",
        "job 1 attempt 3 charge charge",
        "  ConnectionError: the bank did not answer for order 7",
        "job 3 attempt 1 ship",
        "  JobFailed: attempt 1 ended without an error: expired",
    ]


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_traces(tmp_path: Path) -> None:
    """M1: one trace from the request over both attempts to the job that the function enqueues, over two processes."""
    assert told("traces.py", tmp_path).splitlines() == [
        "POST /orders | parent: None | UNSET",
        "send default | parent: POST /orders | UNSET",
        "process default | parent: send default | ERROR",
        "ask the bank | parent: process default | ERROR",
        "process default | parent: send default | UNSET",
        "ask the bank | parent: process default | UNSET",
        "send mail | parent: process default | UNSET",
        "process mail | parent: send mail | UNSET",
        "traces: 1",
    ]


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_asyncpg_orders(tmp_path: Path, postgres_url: str) -> None:
    """J3: a job and a row in one transaction of asyncpg; a rolled back transaction leaves neither."""
    assert told("asyncpg_orders.py", tmp_path, DETENT_DATABASE_URL=postgres_url).splitlines() == [
        "rolled back: the customer went away",
        "jobs: [{'order_id': 7}]",
        "orders: [(7, 'mailed')]; mailed 7",
    ]


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_pydantic_ai_agent(tmp_path: Path) -> None:
    """A crash in the middle: the model is not asked again, and no tool is called twice."""
    assert told("pydantic_ai_agent.py", tmp_path).splitlines() == [
        'attempt 2: {"name":"ruby","carat":4.0}, {"name":"opal","carat":4.0}, {"error":"this is no stone"}',
        "the model was asked 3 times; looked up: glass, opal, ruby",
        "steps: model:1.1, model:1.2, model:1.3, tool:1.1-look_up, tool:1.1-look_up, tool:1.2-look_up",
    ]


@pytest.mark.timeout(SECONDS_MAX + 60)
def test_openai_agent(tmp_path: Path) -> None:
    """The same, with a handoff from one agent to another."""
    assert told("openai_agent.py", tmp_path).splitlines() == [
        "attempt 2: ruby: 4 carat and opal: 4 carat",
        "asked: finder, finder, seller; looked up: opal, ruby",
        "steps: model:1.1, model:1.2, model:1.3, tool:1.1-look_up-opal, tool:1.1-look_up-ruby",
    ]


@pytest.mark.parametrize(
    ("module", "library", "package"),
    [
        ("sentry", "sentry_sdk", "sentry-sdk"),
        ("pydantic_ai", "pydantic_ai", "pydantic-ai-slim"),
        ("openai_agents", "agents", "openai-agents"),
    ],
)
def test_a_missing_library_is_named(module: str, library: str, package: str) -> None:
    code = f"import sys\nsys.modules[{library!r}] = None\nimport detent.integrations.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=SECONDS_MAX)
    says = f"detent.integrations.{module} needs {package}, which is not installed. Run `pip install {package}`."
    assert done.stderr.splitlines()[-1] == f"ImportError: {says}"
