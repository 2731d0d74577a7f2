"""Files of a database as people and systems treat them: cut, copied, closed to writers, read for long, forked with."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from random import Random

from detent import Context, Detent
from detent.errors import DatabaseReadOnly, DetentError, WrongPlace
from detent.store.sqlite.driver import write_ahead_log
from detent.testing.harness import Harness
from detent.testing.stores import START, plain_connection
from prove.coverage import error_points
from prove.figure import Tally
from prove.storage_life import Life, Promise, check

__all__ = ["cut_logs", "forks", "laid_out", "long_reads", "lost_logs", "read_only", "reopened"]

_PIECE = "x" * 100_000
_JOBS_OF_A_CHILD = 4


def laid_out(files: dict[str, bytes], folder: Path) -> None:
    """Write these files, and no others, into the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)


def reopened(path: Path, promises: list[Promise], story: str, tally: Tally, turned: timedelta) -> None:
    """A new process finds these files, opens them, finds what was acknowledged, and works it to its end."""
    promised = list(promises)
    life = Life(promised.append, tally, story)
    life.kept = {(one.job_id, one.what) for one in promises if one.kind == "step"}
    harness = life.insist(lambda: Harness(f"sqlite:///{path}"))
    if harness is None:
        return
    with closing(harness):
        harness.clock.advance(turned)
        life.declare(harness)
        check(harness, promises, tally, story, ended=False)
        life.finish(harness)
        check(harness, promised, tally, f"{story}; worked to the end", ended=True)
    if life.errors:
        tally.add(Tally(wrong=1, stories=[f"{story}: errors although the disk is well: {life.errors}"]))


def cut_logs(template: Path, folder: Path, cuts: int, random: Random, tally: Tally) -> None:
    """The write-ahead log ends at some byte. What was acknowledged before that byte is there."""
    files, noted, turned = _lived(template, folder, tally)
    log = files["t.db-wal"]
    for _ in range(cuts):
        end = random.randint(0, len(log))
        laid_out({"t.db": files["t.db"], "t.db-wal": log[:end]}, folder)
        promises = [promise for size, promise in noted if size <= end]
        tally.injected["log cut at a byte"] += 1
        reopened(folder / "t.db", promises, f"the log ends after {end} of {len(log)} bytes", tally, turned)


def lost_logs(template: Path, folder: Path, tally: Tally) -> None:
    """A database is copied with its log, with its log and an index of another time, and without its log."""
    files, noted, turned = _lived(template, folder, tally)
    all_of_it = [promise for _, promise in noted]
    copies: dict[str, tuple[dict[str, bytes], list[Promise]]] = {
        "copied with its log": ({name: files[name] for name in ("t.db", "t.db-wal")}, all_of_it),
        "copied with its log and index": (files, all_of_it),
        "copied with its log and an old index": (files | {"t.db-shm": bytes(32768)}, all_of_it),
        "copied without its log": ({"t.db": files["t.db"]}, []),
    }
    for story, (copy, promises) in copies.items():
        laid_out(copy, folder)
        tally.injected[story] += 1
        reopened(folder / "t.db", promises, story, tally, turned)


def _lived(template: Path, folder: Path, tally: Tally) -> tuple[dict[str, bytes], list[tuple[int, Promise]], timedelta]:
    """Return the files of a life that is not closed yet, how long the log was at each promise, and the clock."""
    laid_out({"t.db": template.read_bytes()}, folder)
    log, noted = folder / "t.db-wal", list[tuple[int, Promise]]()
    frames, write_ahead_log._FRAMES_MAX = write_ahead_log._FRAMES_MAX, 1000
    try:
        with closing(Harness(f"sqlite:///{folder / 't.db'}")) as harness:
            life = Life(lambda promise: noted.append((log.stat().st_size, promise)), tally, "no fault")
            life.declare(harness)
            life.live(harness)
            files = {name: (folder / name).read_bytes() for name in ("t.db", "t.db-wal", "t.db-shm")}
            return files, noted, harness.clock.now() - START
    finally:
        write_ahead_log._FRAMES_MAX = frames


def read_only(template: Path, folder: Path, tally: Tally) -> None:
    """A file, or its folder, is closed to writers: each call says so, and nothing is changed."""
    for name, closed, mode in (("read-only file", "t.db", 0o444), ("read-only folder", ".", 0o555)):
        laid_out({"t.db": template.read_bytes()}, folder)
        (folder / closed).chmod(mode)
        try:
            for call in ("open", "enqueue"):
                error = _refused(lambda call=call: _call(folder / "t.db", call))  # type: ignore[misc]
                tally.injected[name] += 1
                tally.covered.update(error_points(error))
                if not isinstance(error, DatabaseReadOnly) or [one.name for one in folder.iterdir()] != ["t.db"]:
                    tally.add(Tally(wrong=1, stories=[f"{name}, {call}: {error!r}, {sorted(folder.iterdir())}"]))
        finally:
            folder.chmod(0o755)
        if (folder / "t.db").read_bytes() != template.read_bytes():
            tally.add(Tally(wrong=1, stories=[f"{name}: the file was changed"]))


def _call(path: Path, call: str) -> None:
    with closing(Detent(f"sqlite:///{path}")) as app:
        if call == "open":
            app.store.ready()
        else:
            app.enqueue(app.task(name="keep")(_keep).call(text="x"))


def _refused(act: Callable[[], None]) -> Exception | None:
    try:
        act()
    except Exception as error:
        return error
    return None


def long_reads(template: Path, folder: Path, tally: Tally) -> None:
    """A reader keeps its snapshot. Writers go on, the log grows and says who reads; afterwards it is short again."""
    laid_out({"t.db": template.read_bytes()}, folder)
    before, write_ahead_log.LONG_BYTES = write_ahead_log.LONG_BYTES, 1 << 20
    wrong: list[str] = []
    try:
        with closing(Harness(f"sqlite:///{folder / 't.db'}")) as harness:
            harness.app.task(name="keep")(_keep)

            def fill(times: int) -> None:
                for _ in range(times):
                    harness.app.enqueue(harness.app.find_task("keep").call(text=_PIECE))

            with closing(plain_connection(harness.url)) as reader:
                reader.execute("BEGIN")
                (seen,) = reader.execute("SELECT count(*) FROM detent_job").fetchone()
                fill(30)
                tally.injected["reader that keeps its snapshot"] += 1
                growth = harness.store.log_growth()
                if growth is None or not growth.is_long or os.getpid() not in growth.readers:
                    wrong.append(f"the growth of the log is not reported: {growth}")
                if reader.execute("SELECT count(*) FROM detent_job").fetchone() != (seen,):
                    wrong.append("the reader sees what was written later")
            fill(30)
            growth = harness.store.log_growth()
            if growth is None or growth.is_long:
                wrong.append(f"the reader has ended, and the log stays long: {growth}")
            check(harness, [], tally, "a reader kept its snapshot", ended=False)
    finally:
        write_ahead_log.LONG_BYTES = before
    tally.add(Tally(wrong=len(wrong), stories=wrong))


def _keep(ctx: Context, text: str) -> int:
    return len(text)


def forks(template: Path, folder: Path, tally: Tally) -> None:
    """Processes are forked while connections are open, and outside and inside of a transaction. All of them write."""
    laid_out({"t.db": template.read_bytes()}, folder)
    with closing(Harness(f"sqlite:///{folder / 't.db'}")) as harness:
        harness.app.task(name="keep")(_keep)
        promises: list[Promise] = []

        def enqueue(who: str) -> None:
            for n in range(_JOBS_OF_A_CHILD):
                job = harness.app.enqueue(harness.app.find_task("keep").call(text=who), key=f"{who}{n}")
                promises.append(Promise("job", job.id, f"{who}{n}"))

        def refused() -> None:
            try:
                harness.store.ids_reserve(1)
            except WrongPlace:
                return
            raise AssertionError("a child that was forked in a transaction may write")

        enqueue("parent")
        children = [_forked(lambda n=n: enqueue(f"child{n}")) for n in range(3)]  # type: ignore[misc]
        with harness.store._file.writing() as connection:  # type: ignore[attr-defined]
            connection.execute("INSERT INTO ledger VALUES (0, 'forked')")
            children.append(_forked(refused))
        enqueue("again")
        tally.injected["fork with open connections"] += len(children)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if any(codes):
            tally.add(Tally(wrong=1, stories=[f"children that were forked ended with {codes}"]))
        names = {f"child{n}{m}" for n in range(3) for m in range(_JOBS_OF_A_CHILD)}
        with closing(sqlite3.connect(folder / "t.db")) as mine:
            found = {key for (key,) in mine.execute("SELECT key FROM detent_job_key")}
        if names - found:
            tally.add(Tally(lost=len(names - found), stories=[f"jobs of children are gone: {sorted(names - found)}"]))
        check(harness, promises, tally, "forks", ended=False)


def _forked(act: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        act()
        code = 0
    except (DetentError, AssertionError) as error:
        sys.stderr.write(f"a forked child: {error!r}: {error}\n")
    finally:
        os._exit(code)
