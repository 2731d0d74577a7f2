"""What connects the processes of a simulated worker: channels, boards, and processes as their supervisor sees them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from detent.worker.options import WorkerOptions
from detent.worker.supervisor import board as real_board
from prove.simulation import threads
from prove.simulation.world import Process, world

__all__ = ["Board", "Channel", "GuardedProcess", "WakeupPipe", "start_children_with"]

_numbers = itertools.count(1)
_handed_over: dict[int, Any] = {}
"""Channels and boards that another process inherits, by the number that stands for their descriptor."""
_Start = Callable[[WorkerOptions, "Channel", "Board", Process], Process]
_starts: list[_Start] = []


def start_children_with(start: _Start) -> None:
    """Say how the children of this schedule are started."""
    _starts[:] = [start]


class Channel:
    """One end of a pair of queues."""

    def __init__(self) -> None:
        self._queue: deque[bytes] = deque()
        self.other: Channel | None = None
        self.is_closed = False
        self.is_flushed = True

    @classmethod
    def pair(cls) -> tuple[Channel, _End]:
        here, there = cls(), cls()
        here.other, there.other = there, here
        return here, _End(there)

    def send(self, kind: str, **fields: Any) -> bool:
        assert self.other is not None
        if self.is_closed or self.other.is_closed:
            return False
        self.other._queue.append(msgspec.json.encode({"kind": kind, **fields}))
        return True

    post = send

    def flush(self) -> bool:
        return True

    def messages(self) -> Iterator[dict[str, Any]]:
        while True:
            if not self._queue:
                assert self.other is not None
                if self.other.is_closed or self.is_closed:
                    return
                world().block(self._has_news)
                continue
            yield msgspec.json.decode(self._queue.popleft())

    def _has_news(self) -> bool:
        assert self.other is not None
        return bool(self._queue) or self.other.is_closed or self.is_closed

    def close(self) -> None:
        self.is_closed = True


class _End:
    """The socket of the other side, before it is handed over."""

    def __init__(self, channel: Channel) -> None:
        self._number = next(_numbers)
        _handed_over[self._number] = channel

    def fileno(self) -> int:
        return self._number

    def close(self) -> None:
        """It is with the other process now."""


class Board(real_board.Board):
    """A board in memory of its own."""

    def __init__(self, fileno: int, slots: int) -> None:
        super().__init__(-1, slots)
        self.fileno = next(_numbers)
        _handed_over[self.fileno] = self

    @classmethod
    def create(cls, slots: int) -> Board:
        return cls(-1, slots)

    def freeze(self) -> None:
        """Keep what the child had written when it died: its frames end here only because they must."""
        for name in ("begin", "end", "set_deadline", "set_called", "set_in_process", "set_claiming"):
            setattr(self, name, lambda *args, **kwargs: None)

    def close(self) -> None:
        self._map.close()


class GuardedProcess:
    """A child as its supervisor starts and ends it."""

    def __init__(self, command: list[str], *, pass_fds: Any = (), stdin: Any = None, **_: Any) -> None:
        self._channel: Channel = _handed_over.pop(int(command[-2]))
        self._board: Board = _handed_over.pop(int(command[-1]))
        self._process: Process | None = None
        me = world().current
        assert me is not None
        self._supervisor = me.process
        self.stdin = self

    def __enter__(self) -> GuardedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def write(self, data: bytes) -> None:
        options = msgspec.json.decode(data, type=WorkerOptions)
        self._process = _starts[-1](options, self._channel, self._board, self._supervisor)

    def poll(self) -> int | None:
        assert self._process is not None
        return self._process.exit_code

    def kill(self) -> None:
        assert self._process is not None
        world().kill(self._process)

    def wait(self, timeout: float | None = None) -> int:
        process = self._process
        assert process is not None
        if process.exit_code is None:
            world().block(lambda: process.exit_code is not None, timeout)
        return process.exit_code or 0

    def close(self) -> None:
        self.kill()


class WakeupPipe:
    """Wakes the main thread of a supervisor."""

    def __init__(self) -> None:
        self._event = threads.Event()

    def wake(self) -> None:
        self._event.set()

    def wake_on_signals(self) -> None:
        """There are no signals."""

    def wait(self, timeout: float) -> bool:
        woken = self._event.wait(timeout)
        self._event.clear()
        return woken
