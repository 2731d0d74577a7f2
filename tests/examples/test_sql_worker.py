"""The example `sql`: a worker in bash and psql keeps the promises that Detent's own workers keep."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from detent import Detent, Job
from detent.testing.postgres import find_binaries
from detent.testing.stores import plain_connection
from tests.deadlines import scaled, until

ROOT = Path(__file__).parents[2]
WORKER = ROOT / "examples" / "sql" / "worker.sh"
pytestmark = pytest.mark.timeout(scaled(120) + 60)
COMMAND = """
payload=$(cat)
case $payload in
  *fail*) echo "it's \\"broken\\" \\\\ here" >&2; exit 7 ;;
  *wait*) echo $$ >>"$MARK.all"; echo started >"$MARK"; sleep 600 ;;
  *) printf '{"got": %s, "key": "%s"}' "$payload" "$DETENT_EFFECT_KEY" ;;
esac
"""
PAGE = (ROOT / "docs" / "sql.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def statement(text: str) -> str:
    """A statement of the page, with the parameters of psycopg in place of psql's variables."""
    return re.sub(r"(?<![:\w]):('?)([a-z_]+)\1", lambda found: f"%({found[2]})s" + ("::text" if found[1] else ""), text)


ENQUEUE = statement(BLOCKS[0])
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def app(postgres_ready_url: str) -> Iterator[Detent]:
    with closing(Detent(postgres_ready_url, actor="ana")) as one:
        yield one


@pytest.fixture
def start(app: Detent, tmp_path: Path) -> Iterator[Start]:
    """Starts a worker that has psql and nothing of Detent. None is left behind."""
    psql = next((str(place) for place in find_binaries() if (place / "psql").exists()), "")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")} | {
        "DATABASE_URL": app.settings.database_url,
        "PATH": f"{psql}:/usr/bin:/bin",
        "BACKOFF_SECONDS": "0",
        "BEAT_SECONDS": "0.2",
        "MARK": str(tmp_path / "mark"),
    }
    with ExitStack() as stack:

        def started(*options: str, **more: str) -> subprocess.Popen[bytes]:
            command: list[str | Path] = ["bash", WORKER, *options, "shop.render", "bash", "-c", COMMAND]
            return stack.enter_context(running(command, environment | more))

        yield started
    # A worker that was killed could not end its command.
    for pid in (tmp_path / "mark.all").read_text().split() if (tmp_path / "mark.all").exists() else ():
        with suppress(ProcessLookupError):
            os.killpg(int(pid), signal.SIGKILL)


@contextmanager
def running(command: list[str | Path], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, env=environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def send(app: Detent, word: str, attempts_max: int = 4) -> Job[object]:
    """Enqueue a job as a program in another language does: by SQL alone, in a transaction of its own."""
    with closing(plain_connection(app.settings.database_url)) as connection:
        row = connection.execute(
            ENQUEUE, {"payload": json.dumps({"word": word}), "attempts_max": attempts_max}
        ).fetchone()
        connection.commit()
    return app.jobs.get(int(row[0]))


def outcomes(job: Job[object]) -> list[str | None]:
    return [one.outcome for one in job.executions()]


def test_results_failures_and_hostile_payloads(app: Detent, start: Start) -> None:
    """A result is JSON, an error is the end of stderr, and what a payload contains stays data."""
    hostile = "'; DROP SCHEMA detent CASCADE; -- $(touch pwned) \\ \" :'name' ü"
    good, bad = send(app, hostile), send(app, "fail", attempts_max=2)
    assert start("--drain").wait(scaled(60)) == 0
    key = f"{app.store.identity_of(good.id)}//job/{good.id}"
    assert good.refresh().result == {"got": {"word": hostile}, "key": key}
    assert bad.refresh().state == "quarantined"
    assert outcomes(bad) == ["error", "error"]
    assert bad.error == 'exit code 7: it\'s "broken" \\ here'
    assert app.record.verify() == []


def test_the_statements_of_the_page(app: Detent) -> None:
    """In the order of the page: enqueue, claim, renew, end with a result; a second job ends with an error."""
    url = app.settings.database_url
    jobs = [send(app, "one"), send(app, "two", attempts_max=1)]
    with closing(plain_connection(url)) as connection:
        for job in jobs:
            values: dict[str, object] = {"worker_id": 10**9, "result": '"done"', "error": "no ink"}
            promote, claim, started = (one for one in statement(BLOCKS[1]).split(";") if one.strip())
            connection.execute(promote)
            job_id, attempt, lease, payload = connection.execute(claim).fetchone()
            assert (job_id, attempt) == (job.id, 1)
            assert json.loads(payload)["word"] in ("one", "two")
            values |= {"job_id": job_id, "attempt": attempt, "lease_id": lease}
            seen, renew, event = (one for one in statement(BLOCKS[2]).split(";") if one.strip())
            finish, abort = (one for one in statement(BLOCKS[3]).split(";") if one.strip())
            for one in (started, seen, event):
                connection.execute(one, values)
            assert connection.execute(renew, values).fetchall() == [(lease, [], [])]
            if job is jobs[0]:
                assert connection.execute(finish, values).fetchall() == []
            else:
                assert connection.execute(abort, values).fetchall() == [(1, "error", "quarantined", False, None)]
            connection.commit()
    assert jobs[0].refresh().result == "done"
    assert [one.message for one in jobs[0].events()] == ["half of the pages"]
    assert jobs[1].refresh().error == "no ink"
    assert [one.name for one in app.workers.list()] == ["renderer-1"]
    assert app.record.verify() == []


def test_a_cancel_reaches_the_command(app: Detent, start: Start, tmp_path: Path) -> None:
    job = send(app, "wait")
    start()
    until((tmp_path / "mark").exists, "the start of the command")
    job.cancel(reason="wrong page")
    until(lambda: job.refresh().state == "cancelled", "the cancel")
    assert outcomes(job) == ["cancelled"]


def test_a_worker_that_is_told_to_stop_hands_its_job_back(app: Detent, start: Start, tmp_path: Path) -> None:
    job = send(app, "wait")
    worker = start()
    until((tmp_path / "mark").exists, "the start of the command")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(scaled(30)) == 143
    assert job.refresh().state == "pending"
    assert outcomes(job) == ["released"]
    assert app.workers.list() == []


def test_the_job_of_a_killed_worker_runs_again(app: Detent, start: Start, tmp_path: Path) -> None:
    """The next worker takes the lease away when it has expired; the attempt of the dead one cannot end the job."""
    job = send(app, "wait")
    lease = str(round(scaled(2)))
    victim = start(LEASE_SECONDS=lease)
    until((tmp_path / "mark").exists, "the start of the command")
    os.killpg(victim.pid, signal.SIGKILL)
    (tmp_path / "mark").unlink()
    start(LEASE_SECONDS=lease)
    until((tmp_path / "mark").exists, "the second start")
    *ended, running = outcomes(job)
    assert set(ended) == {"expired"}
    assert running is None
