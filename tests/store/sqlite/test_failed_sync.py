"""A sync that fails: the system drops what it could not write, and reports success at the next sync."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from detent.errors import DatabaseUnreachable, OutcomeUnknown
from detent.model.clock import SystemClock
from detent.store.sqlite.store import SqliteStore
from prove.bad_disk import Disk, Fault, bad_disk, crash_image, is_available
from tests.contract.jobs.sample_jobs import claim_one, enqueue, finish

pytestmark = pytest.mark.skipif(not is_available(), reason="this SQLite cannot be reached by its C interface")


def opened(path: Path) -> SqliteStore:
    store = SqliteStore(str(path), clock=SystemClock())
    store.ready()
    return store


def after_a_crash(path: Path, before: bytes, disk: Disk) -> list[SqliteStore]:
    """Stores on what a crash at this moment could have left, each drawn in another way."""
    stores = []
    for n in range(4):
        files, _ = crash_image({str(path): before}, disk.operations, Random(n))
        folder = path.parent / f"crash{n}"
        folder.mkdir()
        for name, content in files.items():
            (folder / Path(name).name).write_bytes(content)
        stores.append(opened(folder / path.name))
    return stores


def a_file(tmp_path: Path) -> tuple[Path, bytes]:
    path = tmp_path / "t.db"
    opened(path).close()
    return path, path.read_bytes()


def test_what_is_acknowledged_after_a_failed_sync_survives_a_crash(tmp_path: Path) -> None:
    """G8: the claim before it was not synced by itself. It was lost with the failed sync, and everything after it."""
    path, before = a_file(tmp_path)
    with bad_disk() as disk, closing(opened(path)) as store:
        enqueue(store)
        claimed = claim_one(store)
        disk.fault = Fault("sync error", at=disk.calls["sync"] + 1)
        with pytest.raises(OutcomeUnknown):
            finish(store, claimed)
        later = enqueue(store)
        for found in after_a_crash(path, before, disk):
            with closing(found):
                assert found.job_get([later])[0] is not None
                assert found.verify() == []


def test_nothing_is_added_to_a_log_that_cannot_be_written_again(tmp_path: Path) -> None:
    """G8: each write says why, until the disk works again."""
    path, before = a_file(tmp_path)
    with bad_disk() as disk, closing(opened(path)) as store:
        enqueue(store)
        claimed = claim_one(store)
        disk.fault = Fault("sync error", at=disk.calls["sync"] + 1, times=3)
        with pytest.raises(OutcomeUnknown):
            finish(store, claimed)
        with pytest.raises(DatabaseUnreachable, match="a sync of its write-ahead log failed"):
            enqueue(store)
        later = enqueue(store)
        for found in after_a_crash(path, before, disk):
            with closing(found):
                assert found.job_get([later])[0] is not None
