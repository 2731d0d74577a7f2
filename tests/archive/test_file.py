"""The files of an archive: complete or not there, and damage is noticed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from detent.archive.file import Unreadable, find_files, read_header, read_lines, write_file
from detent.model.records import JobRow
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.jobs.sample_jobs import job, succeeded


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "archive").mkdir()
    return tmp_path / "archive"


@pytest.fixture
def jobs(store: Store, clock: StoreClock) -> list[JobRow]:
    made = []
    for _ in range(2):
        made.append(job(store, succeeded(store)))
        clock.advance(60)
    return made


def lines(jobs: list[JobRow]) -> Iterator[tuple[JobRow, Iterator[bytes]]]:
    for one in jobs:
        yield one, iter([b'{"id":', str(one.id).encode(), b"}\n"])


def test_a_file_says_what_it_holds(place: Path, jobs: list[JobRow], clock: StoreClock) -> None:
    """J16: the header has the span of times and ids, and the database; `zcat` prints everything."""
    path = write_file(place, "shop", clock.now(), lines(jobs))
    assert path is not None
    assert find_files(place) == [path]
    assert path.stat().st_mode & 0o777 == 0o600
    header = read_header(path, whole=True)
    assert (header.archive, header.identity, header.jobs) == (1, "shop", 2)
    assert (header.first_id, header.last_id) == (jobs[0].id, jobs[1].id)
    assert (header.first_end, header.last_end) == (jobs[0].finished_at, jobs[1].finished_at)
    printed = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert [one.get("id") for one in printed] == [None, jobs[0].id, jobs[1].id]
    assert [json.loads(line)["id"] for line in read_lines(path)] == [one.id for one in jobs]


def test_nothing_is_there_until_everything_is(place: Path, jobs: list[JobRow], clock: StoreClock) -> None:
    """J16: an error on the way leaves no file; while it is written, the file is not found."""

    def broken() -> Iterator[tuple[JobRow, Iterator[bytes]]]:
        yield from lines(jobs)
        assert [path.name[0] for path in place.rglob("*") if path.is_file()] == ["."]
        assert find_files(place) == []
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        write_file(place, "shop", clock.now(), broken())
    assert [path for path in place.rglob("*") if path.is_file()] == []
    assert write_file(place, "shop", clock.now(), lines([])) is None
    assert [path for path in place.rglob("*") if path.is_file()] == []


def test_damage_is_noticed(place: Path, jobs: list[JobRow], clock: StoreClock) -> None:
    """J16, R3: a cut file, and any changed byte that changes what is read."""
    path = write_file(place, "shop", clock.now(), lines(jobs))
    assert path is not None
    whole = path.read_bytes()
    for number in range(10, len(whole), 7):
        path.write_bytes(whole[:number] + bytes([whole[number] ^ 1]) + whole[number + 1 :])
        with pytest.raises(Unreadable, match="is damaged"):
            list(read_lines(path))
    path.write_bytes(whole[:-3])
    with pytest.raises(Unreadable, match=f"it has {len(whole) - 3:,} bytes instead of {len(whole):,}"):
        read_header(path)
    path.write_bytes(whole[:30])
    with pytest.raises(Unreadable, match="its header cannot be read"):
        read_header(path)
    path.unlink()
    with pytest.raises(Unreadable, match="cannot be opened"):
        read_header(path)
