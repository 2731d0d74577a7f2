"""P8: SQLite on a bad day. Disks that fail, crashes that lose what was not synced, files that were cut or copied."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random

from detent.store.sqlite.driver import write_ahead_log
from detent.testing.harness import Harness
from detent.testing.stores import START, plain_connection
from prove.bad_disk import FAULTS, Fault, bad_disk, crash_image, is_available
from prove.coverage import error_points, fault_points, transitions_of
from prove.figure import Budget, Tally
from prove.storage_files import cut_logs, forks, laid_out, long_reads, lost_logs, read_only, reopened
from prove.storage_life import LEDGER, Life, check

__all__ = ["run"]

_FRAMES_MAX = 60
"""A checkpoint runs after so many frames, instead of 1,000: it is part of each short life."""
_SOON = 80
"""Of two crashes after each fault, one follows within so many operations."""


def run(budget: Budget) -> Tally:
    """Try every fault at calls that are drawn from the seed, until the time or the count is up."""
    tally = Tally()
    if not is_available():
        tally.wrong += 1
        tally.stories.append("the SQLite of this Python cannot be reached by its C interface, so no disk can fail")
        return tally
    random = Random(budget.seed)
    with _small_checkpoints(), tempfile.TemporaryDirectory(prefix="detent-disk-", dir=_fast_place()) as folder:
        place = Path(folder)
        template = _template(place)
        wanted = budget.count(commit=400, nightly=8_000, release=200_000)
        files = place / "files"
        cut_logs(template, files, budget.count(commit=20, nightly=400, release=4_000), random, tally)
        lost_logs(template, files, tally)
        read_only(template, files, tally)
        long_reads(template, files, tally)
        forks(template, files, tally)
        calls = _one_life(template, place / "life", None, random, tally)
        names = itertools.cycle(FAULTS)
        while not budget.is_spent and tally.injected.total() < wanted:
            name = next(names)
            fault = Fault(name, random.randint(1, calls[FAULTS[name].call] or 1), random.choice((1, 1, 2, 20)))
            _one_life(template, place / "life", fault, random, tally)
        _record(template, place / "whole", tally)
    return tally


@contextmanager
def _small_checkpoints() -> Iterator[None]:
    before = write_ahead_log._FRAMES_MAX
    write_ahead_log._FRAMES_MAX = _FRAMES_MAX
    try:
        yield
    finally:
        write_ahead_log._FRAMES_MAX = before


def _fast_place() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _url(path: Path) -> str:
    return f"sqlite:///{path}"


def _template(place: Path) -> Path:
    """Return a database with the schema and the ledger, and no log beside it."""
    path = place / "template.db"
    Harness(_url(path)).close()
    with closing(plain_connection(_url(path))) as connection:
        connection.execute(LEDGER)
        connection.commit()
    assert not path.with_name("template.db-wal").exists()
    return path


def _copied(template: Path, folder: Path) -> Path:
    laid_out({"t.db": template.read_bytes()}, folder)
    return folder / "t.db"


def _one_life(template: Path, folder: Path, fault: Fault | None, random: Random, tally: Tally) -> Counter[str]:
    """A life in which one fault happens, and crashes at moments of it. Return the calls that it made."""
    story = str(fault or "no fault")
    path = _copied(template, folder)
    before = {str(path): path.read_bytes()}
    with bad_disk() as disk:
        life = Life(disk.note, tally, story)
        with closing(Harness(_url(path))) as harness:
            life.declare(harness)
            disk.fault = fault
            disk.calls.clear()
            life.live(harness)
            disk.fault = None
            promises = [one.data for one in disk.operations if one.kind == "note"]
            calls, turned = disk.calls.copy(), harness.clock.now() - START
            check(harness, promises, tally, story, ended=True)
    if fault is not None and disk.failed:
        tally.injected[fault.name] += disk.failed
        tally.covered.update(dict.fromkeys(fault_points(fault.name), disk.failed))
    tally.covered.update(error_points(life.errors))
    for first, last in ((1, len(disk.operations)), (disk.failed_at + 1, disk.failed_at + _SOON)):
        end = min(random.randint(first, last), len(disk.operations))
        files, promises = crash_image(before, disk.operations[:end], random)
        laid_out({Path(name).name: content for name, content in files.items()}, folder)
        tally.injected["crash that loses what was not synced"] += 1
        tally.covered.update(fault_points("lost sync"))
        reopened(path, promises, f"{story}; a crash after operation {end}", tally, turned)
    return calls


def _record(template: Path, folder: Path, tally: Tally) -> None:
    """Count the transitions of one life that nothing has disturbed."""
    path = _copied(template, folder)
    with closing(Harness(_url(path))) as harness:
        life = Life(lambda _: None, tally, "no fault")
        life.declare(harness)
        life.live(harness)
    tally.covered.update(transitions_of(_url(path)))
