"""One contender on a fresh database: its commands, its workers, and what they leave behind."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from benchmarks.contenders.board import Board
from benchmarks.contest.contender import Contender
from benchmarks.contest.processes import Tree
from benchmarks.places import Places

__all__ = ["Arena", "Failed", "arena"]

PATIENCE = 900.0
STANDSTILL = 60.0
LOOK = 0.02
LOOK_CLOSELY = 0.002
CLOSE = 0.95
"""From this part of the work on, whoever waits looks closely. Every look takes the processor from those at work, and
most from those who leave none of it idle."""
STATEMENT = re.compile(r"LOG:  (?:statement|execute)")


class Failed(RuntimeError):
    """A contender did not come to the end of its work; the message is what it said."""


class Arena:
    """Where one contender does one work."""

    def __init__(self, contender: Contender, places: Places, url: str, directory: Path) -> None:
        self.contender = contender
        self.url = url
        self.places = places
        self._directory = directory
        self._boards = 0
        self.new_board()

    def new_board(self) -> None:
        """An empty one, for whoever works next."""
        self._boards += 1
        directory = self._directory / f"board-{self._boards}"
        directory.mkdir(parents=True)
        self.board = Board(directory)
        self._board_directory = directory

    def run(self, command: str, count: int, **settings: str) -> dict[str, float]:
        """The contender's own answer. Raises what it said where it failed."""
        environment = self._environment(settings)
        words = [*self.contender.program, command, str(count)]
        done = subprocess.run(
            words, cwd=self.contender.home, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
        if done.returncode:
            raise Failed(f"{command} {count}: {done.stderr[-2000:]}")
        answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return answer

    @contextmanager
    def working(self, processes: int = 1, **settings: str) -> Iterator[Tree]:
        """Its workers, for as long as the block lasts. Detent gets one supervisor with `processes`
        children, the others get that number of workers."""
        each, times = (processes, 1) if self.contender.name == "Detent" else (1, processes)
        with (self._directory / "said").open("ab") as said, Tree() as tree:
            for _ in range(times):
                words = [*self.contender.program, "work", str(each)]
                environment = self._environment(settings)
                tree.add(
                    subprocess.Popen(
                        words,
                        cwd=self.contender.home,
                        env=environment,
                        stdout=said,
                        stderr=said,
                        start_new_session=True,
                    )
                )
            yield tree

    @contextmanager
    def process(self, words: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
        """Another program on this database, for as long as the block lasts; SIGTERM ends it."""
        with (self._directory / "said").open("ab") as said:
            program = subprocess.Popen(
                words,
                cwd=self.contender.home,
                env=self._environment({}),
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
            try:
                yield program
            finally:
                program.terminate()
                program.communicate(timeout=30)

    def settle(self) -> None:
        """What autovacuum would have done by now, for everybody alike."""
        self.places.settle(self.url)

    def wait_for(self, count: int, tree: Tree) -> None:
        """Wait until `count` bodies have begun. Raises if workers end before that, or begin none for a while."""
        before, until = -1, 0.0
        while (total := self.board.total()) < count:
            if total > before:
                before, until = total, time.monotonic() + STANDSTILL
            if time.monotonic() > until or (not tree.is_alive and self.board.total() < count):
                said = (self._directory / "said").read_text(errors="replace")[-2000:]
                raise Failed(f"{total} of {count} jobs done: {said}")
            tree.look()
            time.sleep(LOOK if 0 < total < CLOSE * count else LOOK_CLOSELY)

    def wait_for_the_end(self, tree: Tree) -> None:
        """Wait until workers that end by themselves have done so."""
        until = time.monotonic() + PATIENCE
        while tree.is_alive:
            if time.monotonic() > until:
                raise Failed(f"the workers did not end within {PATIENCE:g} s")
            time.sleep(LOOK)

    def wait_until_none_is_left(self, first_id: int = 0) -> None:
        """Until the database says so of the jobs from `first_id` on, where it can."""
        if self.contender.left is None:
            return
        until = time.monotonic() + STANDSTILL
        question = self.contender.left.format(and_since=f" AND id >= {first_id}" if first_id else "")
        with self._looking(question) as is_left:
            while is_left():
                if time.monotonic() > until:
                    raise Failed("some jobs never came to their end")
                time.sleep(LOOK_CLOSELY)

    def count(self, question: str) -> int:
        """The number that a question in SQL comes to. Detent's tables have `{detent}` before their names."""
        is_postgres = self.contender.database == "PostgreSQL"
        with self._connected() as connection:
            text = question.format(detent="detent." if is_postgres else "detent_")
            ((answer,),) = connection.execute(text).fetchall()
        return int(answer)

    def disk(self) -> int:
        """Bytes that the database has on its disk, after what is written behind it has been done."""
        self.settle()
        if self.contender.database == "PostgreSQL":
            return self.count("SELECT pg_database_size(current_database())")
        with self._connected() as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return Path(self.url.removeprefix("sqlite:///")).stat().st_size

    @contextmanager
    def beside(self) -> Iterator[Arena]:
        """Another one of the same kind, as fresh as this one was."""
        with arena(self.contender, self.places) as other:
            yield other

    def log_statements(self) -> None:
        """From the next connection on the server writes down every statement in this database, where it is ours."""
        if self._log is not None:
            with psycopg.connect(self.url, autocommit=True) as connection:
                name = connection.info.dbname
                connection.execute(sql.SQL("ALTER DATABASE {} SET log_statement = 'all'").format(sql.Identifier(name)))

    def statements(self) -> int | None:
        """How many are written down so far; None where nobody writes."""
        return None if self._log is None else len(STATEMENT.findall(self._log.read_text(errors="replace")))

    @property
    def _log(self) -> Path | None:
        home = self.places.cluster.home
        return home / "log" if home is not None and self.contender.database == "PostgreSQL" else None

    @contextmanager
    def _looking(self, question: str) -> Iterator[partial[bool]]:
        with self._connected() as connection:
            yield partial(_asked, connection, question)

    def _connected(self) -> AbstractContextManager[Any]:
        if self.contender.database == "PostgreSQL":
            return psycopg.connect(self.url, autocommit=True)
        return closing(sqlite3.connect(self.url.removeprefix("sqlite:///"), timeout=30.0))

    def _environment(self, settings: dict[str, str]) -> dict[str, str]:
        own = {"BENCH_URL": self.url, "BENCH_BOARD": str(self._board_directory), "PYTHONPATH": str(self.contender.home)}
        wanted = {**os.environ, **own, **self.contender.settings, **settings}
        return {name: value for name, value in wanted.items() if value}


def _asked(connection: Any, question: str) -> bool:
    ((answer,),) = connection.execute(question).fetchall()
    return bool(answer)


@contextmanager
def arena(contender: Contender, places: Places) -> Iterator[Arena]:
    """Prepared by the contender itself; nothing is left of it afterwards."""
    with tempfile.TemporaryDirectory() as directory:
        make = partial(_prepare, contender, places, Path(directory))
        known_as = " ".join(contender.program)
        opened = places.postgres(make, known_as) if contender.database == "PostgreSQL" else places.sqlite(make)
        with opened as url:
            yield Arena(contender, places, url, Path(directory) / "arena")


def _prepare(contender: Contender, places: Places, directory: Path, url: str) -> None:
    Arena(contender, places, url, directory / "preparing").run("prepare", 0)
