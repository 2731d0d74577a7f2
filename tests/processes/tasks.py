"""An application of well-behaved and of hostile tasks."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from detent import Context, Detent, Fatal, Job, Probed, Retry, Snooze, Throttled, shell
from tests.deadlines import scaled

AGAIN = Retry(1, base=0.1, jitter=0)
log = logging.getLogger("shop.mail")


SPEECH = r"""
echo first; echo second; echo second
printf 'bytes \377 and \000 nul\n'
head -c 20000 /dev/zero | tr '\0' x; echo
printf 'no end'
sleep 0.1
echo problem >&2
"""


def echo(word: str, times: int = 1) -> list[str]:
    return ["echo", *[word] * times]


def leave_behind(gate: str) -> list[str]:
    """Ends at once, and leaves a process behind."""
    return ["sh", "-c", f"sleep 600 & echo $! >> {gate}.in"]


def tree(gate: str) -> list[str]:
    """Three processes that do not hear SIGTERM, one of them in a session of its own."""
    inner = f"echo $$ >> {gate}.in; while :; do sleep 600; done"
    return ["sh", "-c", f"trap '' TERM; echo planted; setsid sh -c '{inner}' & sh -c '{inner}' & {inner}"]


def enter(gate: str) -> Path:
    with open(f"{gate}.in", "a") as file:
        file.write(f"{os.getpid()}\n")
    return Path(f"{gate}.open")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


WHO: ContextVar[int] = ContextVar("who", default=0)


async def remember(ctx: Context, wait: bool) -> list[int]:
    """What the variable was before and is after this job set it; under a time-out, which needs a task around it."""
    before = WHO.get()
    WHO.set(ctx.job_id)
    async with asyncio.timeout(30):
        if wait:
            await asyncio.sleep(0.01)
        return [before, WHO.get() - ctx.job_id]


def pay(ctx: Context, gate: str, pays: bool) -> str:
    """Act on the world (a file with one line for each time), and wait at the gate where it is the first time."""
    if pays:
        with open(f"{gate}.paid", "a") as book:
            book.write(f"{ctx.effect_key}\n")
    door = enter(gate)
    while not door.exists():
        time.sleep(0.01)
    return "paid"


async def pay_async(ctx: Context, gate: str, pays: bool) -> str:
    return pay(ctx, gate, pays)


def has_paid(ctx: Context, gate: str, pays: bool) -> Probed:
    with open(f"{gate}.asked", "a") as book:
        book.write(f"{ctx.effect_key}\n")
    book_of = Path(f"{gate}.paid")
    there = book_of.exists() and ctx.effect_key in book_of.read_text().split()
    if not there:
        Path(f"{gate}.open").touch()
    return Probed.done("found in the books") if there else Probed.not_done()


async def has_paid_async(ctx: Context, gate: str, pays: bool) -> Probed:
    return has_paid(ctx, gate, pays)


def hold(ctx: Context, gate: str) -> str:
    door = enter(gate)
    while not door.exists():
        time.sleep(0.01)
    return "let go"


async def hold_async(ctx: Context, gate: str) -> str:
    door = enter(gate)
    while not door.exists():
        await asyncio.sleep(0.01)
    return "let go"


def listen(ctx: Context, gate: str) -> str:
    door = enter(gate)
    while not door.exists():
        if ctx.cancelled:
            raise RuntimeError("stopped as asked")
        time.sleep(0.01)
    return "let go"


async def stubborn_async(ctx: Context, gate: str) -> None:
    door = enter(gate)
    while not door.exists():
        try:
            await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            log.info("not me")


def hold_interpreter(ctx: Context, gate: str, seconds: int) -> str:
    """Sleep in C with the interpreter's lock held: no other thread of this process moves."""
    enter(gate)
    ctypes.PyDLL(None).sleep(seconds)
    return "awake"


def breathe(ctx: Context, seconds: float) -> str:
    """A short job that lets others have their turns."""
    for _ in range(10):
        time.sleep(seconds / 10)
    return "well"


async def breathe_async(ctx: Context, seconds: float) -> str:
    for _ in range(10):
        await asyncio.sleep(seconds / 10)
    return "well"


def hold_interpreter_late(ctx: Context, gate: str, after: float, seconds: int) -> str:
    """Let others begin first."""
    time.sleep(after)
    return hold_interpreter(ctx, gate, seconds)


async def listen_async(ctx: Context, gate: str) -> str:
    door = enter(gate)
    while not door.exists():
        ctx.raise_if_cancelled()
        await asyncio.sleep(0.01)
    return "let go"


async def seize_interpreter(ctx: Context, gate: str, seconds: int) -> None:
    """The same on the loop, before any other thread has had a turn since the job came in."""
    ctypes.PyDLL(None).sleep(seconds)
    enter(gate)


def hold_database(ctx: Context, gate: str) -> None:
    """Take the interpreter while another thread of this process is in the middle of a write."""
    inside = threading.Event()

    def write(verbs: object) -> None:
        inside.set()
        time.sleep(600)

    with Detent(app.settings.database_url) as own:
        threading.Thread(target=own.store.together, args=(write,), daemon=True).start()
        inside.wait()
        hold_interpreter(ctx, gate, 600)


def block_loop(ctx: Context, gate: str) -> None:
    door = enter(gate)
    while not door.exists():
        time.sleep(0.01)


async def block_loop_async(ctx: Context, gate: str) -> None:
    block_loop(ctx, gate)


def add(ctx: Context, a: int, b: int) -> int:
    return a + b


async def add_async(ctx: Context, a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


def which_process(ctx: Context) -> int:
    return os.getpid()


def kill_process(ctx: Context) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def exit_process(ctx: Context) -> None:
    os._exit(3)


async def exit_process_async(ctx: Context) -> None:
    os._exit(3)


def raise_exit(ctx: Context) -> None:
    sys.exit("enough")


def eat_memory(ctx: Context) -> None:
    eaten = []
    while True:
        eaten.append(bytearray(2**24))


def fail(ctx: Context, how: str) -> None:
    match how:
        case "nul":
            raise ValueError("a\0b")
        case "surrogate":
            raise ValueError("a\ud800b")
        case "long":
            raise ValueError("x" * 5_000_000)
        case "unprintable":
            raise Unprintable
        case "fatal":
            raise Fatal("never again")
        case "wrong call":
            app.find_task("add").call(a="no number")
        case "self-cancelled":
            raise asyncio.CancelledError
        case _:
            raise ValueError(how)


async def fail_async(ctx: Context, how: str) -> None:
    fail(ctx, how)


def fork_often(ctx: Context, times: int) -> list[int]:
    """Fork by both ways there are, while other threads do the same; the exit codes of the copies."""
    codes: list[int] = []
    for _ in range(times):
        ctx.event("forking")
        if (pid := os.fork()) == 0:
            os._exit(7)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0.01,))
        process.start()
        process.join()
        codes.append(process.exitcode or 0)
    return codes


def fork_deaf(ctx: Context, gate: str) -> str:
    """Leave children behind that do not hear SIGTERM, one of them in a session of its own."""
    deaf = "import signal, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    for alone in (False, True):
        child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE, start_new_session=alone)
        assert child.stdout is not None
        child.stdout.readline()
        with open(f"{gate}.deaf", "a") as file:
            file.write(f"{child.pid}\n")
    return hold(ctx, gate)


def fork_and_return(ctx: Context, gate: str) -> str:
    """Come back twice: once in a copy of the process."""
    pid = os.fork()
    enter(gate)
    if pid:
        os.waitpid(pid, 0)
    return "parent" if pid else "copy"


def terminate_child(ctx: Context) -> int:
    """Programs that a task starts hear SIGTERM."""
    child = subprocess.Popen(["sleep", "600"])
    child.terminate()
    return child.wait(scaled(20))


def once(ctx: Context, how: str) -> str:
    if ctx.attempt > 1:
        return "second"
    if how == "snooze":
        raise Snooze(0.2)
    raise Throttled(0.2)


def chatty(ctx: Context) -> None:
    log.warning("said %s", "aloud")
    log.info("%d is no number", "this")
    ctx.event("in between", n=1)
    logging.getLogger("detent.inner").info("not for the record")


def answer(ctx: Context) -> dict[str, Any]:
    return {"list": [1, 2.5, None], "text": "ä\u0001"}


def unstorable(ctx: Context) -> Any:
    return object()


def commit_then(ctx: Context, gate: str, how: str) -> str:
    with ctx.commit() as tx:
        tx.result("committed")
    enter(gate)
    if how == "exit":
        os._exit(5)
    return hold(ctx, gate)


TRIED_TWICE: tuple[Callable[..., Any], ...] = (
    *(hold, hold_async, listen, add, add_async, which_process, terminate_child, chatty, answer, once),
    *(kill_process, exit_process, exit_process_async, raise_exit, eat_memory, fail, fail_async),
    *(fork_often, fork_deaf, fork_and_return, unstorable, commit_then, remember),
)
A_SECOND: tuple[Callable[..., Any], ...] = (
    *(hold, hold_async, listen, stubborn_async, hold_interpreter, block_loop_async),
)
APART: tuple[Callable[..., Any], ...] = (
    *(add, add_async, which_process, hold, listen, kill_process, exit_process, chatty, commit_then),
)


def make_app(url: str | None = None) -> Detent:
    app = Detent(url)
    for function in TRIED_TWICE:
        app.task(name=function.__name__, retry=AGAIN)(function)
    for function in A_SECOND:
        app.task(name=f"{function.__name__}_1s", retry=Retry(0), timeout=1)(function)
    for function in APART:
        app.task(name=f"{function.__name__}_apart", retry=AGAIN, process=True)(function)
    for function in (breathe, breathe_async, hold_interpreter_late):
        app.task(name=f"{function.__name__}_2s", retry=Retry(0), timeout=scaled(2.0))(function)
    app.task(name="breathe_apart_2s", retry=Retry(0), timeout=scaled(2.0), process=True)(breathe)
    app.task(name="hold_interpreter_late", retry=Retry(0))(hold_interpreter_late)
    app.task(name="listen_async", retry=AGAIN)(listen_async)
    app.task(name="block_loop_async", retry=AGAIN)(block_loop_async)
    app.task(name="hold_apart_1s", retry=Retry(0), process=True, timeout=1)(hold)
    # Time enough to start what they are to leave behind, on a machine that starts processes slowly.
    app.task(name="fork_deaf_8s", retry=Retry(0), timeout=8)(fork_deaf)
    app.task(name="hold_interpreter", retry=Retry(0))(hold_interpreter)
    app.task(name="seize_interpreter", retry=Retry(0))(seize_interpreter)
    app.task(name="hold_database", retry=Retry(0))(hold_database)
    app.task(name="hold_carefully", retry=AGAIN, idempotent=False)(hold)
    app.task(name="pay", retry=AGAIN, idempotent=False, probe=has_paid)(pay)
    app.task(name="pay_async", retry=AGAIN, idempotent=False, probe=has_paid_async)(pay_async)
    app.task(name="pay_in_time", retry=AGAIN, idempotent=False, probe=has_paid, timeout=2)(pay)
    app.task(name="add_apart_once", retry=Retry(0, base=0.1, jitter=0), process=True)(add)
    app.task(name="renamed", aliases=["old_name"])(add)
    app.task(name="hold_once", retry=Retry(0))(hold)
    app.task(name="exit_process_once", retry=Retry(0))(exit_process)
    app.task(name="hold_capped", queue="capped")(hold)
    shell(app, "speak", ["sh", "-c", SPEECH])
    shell(app, "flood", ["sh", "-c", "yes | head -n 5000"], lines_max=3)
    shell(app, "words", echo)
    shell(app, "env", ["env"], env={"GREETING": "hello"}, inherit=["PATH"])
    shell(app, "where", ["pwd"], cwd="/")
    shell(app, "exit_7", ["sh", "-c", "echo sorry >&2; exit 7"], retry=Retry(0))
    shell(app, "no_such", ["/no/such/program"], retry=Retry(0))
    shell(app, "leave_behind", leave_behind, retry=AGAIN)
    shell(app, "tree", tree, retry=AGAIN, grace=scaled(0.3))
    shell(app, "tree_8s", tree, retry=Retry(0), grace=scaled(0.3), timeout=8)

    @app.on_failure
    def remember(job: Job[Any]) -> None:
        if job.metadata.get("tell_slowly"):
            door = enter(job.metadata["tell_slowly"])
            while not door.exists():
                time.sleep(0.01)
        if job.metadata.get("tell"):
            with Path(job.metadata["tell"]).open("a") as file:
                file.write(f"{job.id} {job.state}\n")

    return app


app = make_app()
