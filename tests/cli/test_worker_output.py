"""What `detent worker` logs."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from typing import Any

import pytest

from detent.app.detent import Detent
from tests.cli.shell import SECONDS_MAX, Shell

NOISY = """
import logging, sys, threading, warnings
from detent import Context, Detent, Retry

app = Detent()
log = logging.getLogger("noisy")

@app.task(name="speak", retry=Retry(0))
def speak(ctx: Context) -> None:
    print("printed"); print("two\\nlines", file=sys.stderr)
    log.warning("logged \u2028 over two lines\\nlike this")
    warnings.warn("old ways")
    try:
        1 / 0
    except ZeroDivisionError:
        log.exception("caught")
    thread = threading.Thread(target=lambda: 1 / 0, name="loose")
    thread.start(); thread.join()

@app.on_failure
def never(job): raise RuntimeError("hook")

@app.task(name="fail", retry=Retry(0))
def fail(ctx: Context) -> None:
    raise RuntimeError("as it must")
"""
ILL = """
import sys
from detent import Detent

if sys.argv[0].endswith("child/__main__.py"):
    raise ImportError("no module of\\nmine")
app = Detent()
"""


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_every_line_is_a_json_object(sqlite_shell: Shell) -> None:
    """U2, M1: log records with tracebacks, printed lines, and uncaught exceptions."""
    (sqlite_shell.directory / "noisy.py").write_text(NOISY)
    with Detent(sqlite_shell.environment["DETENT_DATABASE_URL"]) as app:
        trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        speak, _ = (app.task(name=name)(lambda ctx: None) for name in ("speak", "fail"))
        job = app.enqueue(speak.call(), traceparent=trace)
        app.enqueue(app.find_task("fail").call())
    ended = sqlite_shell.run("worker", "noisy:app", "--drain", "--log-format", "json")
    assert (ended.code, ended.out) == (0, "")
    told = lines(ended.err)
    said = {(line["logger"], line["message"]) for line in told}
    assert {("stdout", "printed"), ("stderr", "two"), ("stderr", "lines")} <= said
    assert ("noisy", "logged \u2028 over two lines\nlike this") in said
    assert any("old ways" in line["message"] for line in told)
    assert {line["worker"] for line in told} == {told[0]["worker"]}
    (logged,) = [line for line in told if line["logger"] == "noisy" and line["level"] == "WARNING"]
    ids = {name: logged[name] for name in ("job", "attempt", "task", "trace_id")}
    assert ids == {"job": str(job.id), "attempt": 1, "task": "speak", "trace_id": trace.split("-")[1]}
    errors = {line["message"]: line["error"] for line in told if "error" in line}
    assert "ZeroDivisionError" in errors["caught"]
    assert "Traceback" in errors["ZeroDivisionError: division by zero"]
    assert any("RuntimeError: hook" in error for error in errors.values())


def test_an_error_at_start_is_a_json_line(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("worker", "nowhere:app", "--log-format", "json")
    assert (ended.code, ended.out) == (2, "")
    (line,) = lines(ended.err)
    assert "no module 'nowhere'" in line["message"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_child_that_cannot_start_is_retried_with_backoff(sqlite_shell: Shell, form: str) -> None:
    """G6: one line per try, with the cause and the time of the next try, and no traceback."""
    (sqlite_shell.directory / "ill.py").write_text(ILL)
    process = sqlite_shell.start("worker", "ill:app", "--log-format", form)
    try:
        assert process.stderr is not None
        seen: list[str] = []
        while sum("cannot start" in line for line in seen) < 3:
            line = process.stderr.readline()
            assert line, seen
            seen.append(line)
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=SECONDS_MAX)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    failed = [line for line in seen if "cannot start" in line]
    assert all("ImportError: no module of" in line and "ill.py:6" in line for line in failed)
    pauses = [line.rpartition("trying again in ")[2].split()[0] for line in failed]
    assert pauses == ["1", "2", "4"]
    assert not any("Traceback" in line for line in (*seen, rest))
    assert len(seen) <= 5
    assert process.returncode == 0
    if form == "json":
        lines("".join(seen) + rest)


def test_sigterm_while_it_waits_for_its_database(sqlite_shell: Shell) -> None:
    """W1, W4: it ends at once with a log line and exit code 0."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound but not listening, so that no other process takes the port
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        sqlite_shell.environment["DETENT_DATABASE_URL"] = f"postgresql://nobody@{address}/nothing"
        process = sqlite_shell.start("worker", "shop:app", "--name", "w1")
        assert process.stderr is not None
        try:
            assert "starting failed, trying again" in process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            _, rest = process.communicate(timeout=SECONDS_MAX)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    assert process.returncode == 0
    assert rest.endswith("Worker w1 was told to stop before it had started.\n")


def test_sigterm_while_it_creates_its_database(lone_shell: Shell) -> None:
    """W1: the stop was lost inside a callback of SQLite, and the worker ran for ever."""
    place = lone_shell.directory / "new.db"
    process = lone_shell.start("worker", "shop:app", "--database", f"sqlite:///{place}")
    try:
        while not place.exists():
            assert process.poll() is None
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=SECONDS_MAX)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
    assert process.returncode == 0, said


def test_a_worker_that_cannot_archive_does_not_start(sqlite_shell: Shell) -> None:
    """J16: otherwise nothing would be deleted, and that would go unnoticed for days."""
    ended = sqlite_shell.run("worker", "shop:app", "--drain", DETENT_RETENTION_ARCHIVE="nowhere")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "detent: retention_archive: found 'nowhere'; allowed: an existing directory with write permission\n"
    )


def test_a_worker_has_a_name(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("worker", "shop:app", "--name", "", "--drain")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("detent: name: found an empty string; allowed: ")


def test_debug_shows_the_traceback(sqlite_shell: Shell) -> None:
    (sqlite_shell.directory / "ill.py").write_text(ILL)
    sqlite_shell.environment["DETENT_DEBUG"] = "1"
    process = sqlite_shell.start("worker", "ill:app")
    try:
        assert process.stderr is not None
        assert any("Traceback" in line for line in iter(process.stderr.readline, ""))
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            process.kill()


CHATTY = """
import logging, sys, types
from detent import Context, Detent

app = Detent()
own = logging.getLogger("somewhere.else")
code = '''
import logging
def call():
    logging.getLogger("chatty").info("GET /")
    logging.getLogger("chatty").warning("slow")
'''
library = types.ModuleType("chatty")
import sysconfig
exec(compile(code, sysconfig.get_path("purelib") + "/chatty/client.py", "exec"), library.__dict__)

@app.task(name="ask")
def ask(ctx: Context) -> None:
    library.call()
    own.info("asked")
"""


@pytest.mark.parametrize(
    ("level", "logged"),
    [(None, ["slow", "asked"]), ("info", ["GET /", "slow", "asked"]), ("warning", ["slow"])],
)
def test_the_log_level_and_only_warnings_of_libraries(
    sqlite_shell: Shell, level: str | None, logged: list[str]
) -> None:
    """M1: the INFO lines of an HTTP client filled the log and the events of every job."""
    (sqlite_shell.directory / "talk.py").write_text(CHATTY)
    with Detent(sqlite_shell.environment["DETENT_DATABASE_URL"]) as app:
        job = app.task(name="ask")(lambda ctx: None).enqueue()
        chosen = () if level is None else ("--log-level", level)
        ended = sqlite_shell.run("worker", "talk:app", "--drain", "--log-format", "json", *chosen)
        assert ended.code == 0, ended.err
        said = [line["message"] for line in lines(ended.err) if line["logger"] in ("chatty", "somewhere.else")]
        assert said == logged
        assert [event.message for event in job.events()] == logged


def test_a_worker_logs_its_database_queues_and_tasks(sqlite_shell: Shell) -> None:
    """W1: a worker on the wrong database looks like an idle one."""
    place = sqlite_shell.environment["DETENT_DATABASE_URL"]
    ended = sqlite_shell.run("worker", "shop:app", "--drain", "--name", "w1", "--queues", "mail,bulk:4")
    (line,) = [line for line in ended.err.splitlines() if "database" in line]
    assert line.endswith(f"Worker w1: database {place}; queues mail, bulk; tasks add, fail.")


def test_a_url_in_the_environment_that_the_code_overrides_is_reported(sqlite_shell: Shell) -> None:
    """U2: it was ignored silently."""
    (sqlite_shell.directory / "fixed.py").write_text('from detent import Detent\napp = Detent("sqlite:///own.db")\n')
    ended = sqlite_shell.run("worker", "fixed:app", "--drain")
    assert "WARNING detent.worker: DETENT_DATABASE_URL is ignored: fixed:app names its own database, " in ended.err
    listed = sqlite_shell.run("jobs", "list", "--app", "fixed:app", "--json")
    assert listed.err.startswith("DETENT_DATABASE_URL is ignored: fixed:app names its own database, ")
    assert listed.json == []


def test_metrics_that_cannot_be_served_are_refused_at_once(sqlite_shell: Shell) -> None:
    """M1: before the worker starts, with the cause."""
    (sqlite_shell.directory / "noisy.py").write_text(NOISY)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = sqlite_shell.run("worker", "noisy:app", "--metrics-port", str(taken.getsockname()[1]))
    assert (ended.code, "Address already in use" in ended.err) == (2, True)
    ended = sqlite_shell.run("worker", "noisy:app", "--metrics-port", "0", "--metrics-host", "example.com")
    assert (ended.code, "an IP address" in ended.err) == (2, True)
