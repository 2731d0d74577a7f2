"""The board of a child: entries that another process can read."""

from __future__ import annotations

import os

import pytest

from detent.worker.supervisor.board import Board


@pytest.mark.parametrize("refused", [None, OSError, AttributeError])
def test_what_is_written_is_seen_through_its_file(
    monkeypatch: pytest.MonkeyPatch, refused: type[Exception] | None
) -> None:
    """W1: also where the system has no files in memory, or lets nobody make one."""
    if refused is not None:

        def refuse(_name: str) -> int:
            raise refused("not here")

        monkeypatch.setattr(os, "memfd_create", refuse, raising=False)
    board = Board.create(2)
    board.begin("a", 7, 1, 10.0, 20.0)
    board.beat(11.0)
    other = Board(os.dup(board.fileno), 2)
    assert [(entry.job_id, entry.attempt, entry.deadline) for entry in other.entries()] == [(7, 1, 20.0)]
    assert other.last_beat() == 11.0
    assert not board.claims_forbidden()
    other.forbid_claims()
    assert board.claims_forbidden()
    board.close()
    other.close()
