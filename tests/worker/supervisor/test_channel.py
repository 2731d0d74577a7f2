"""Messages between a supervisor and its child."""

from __future__ import annotations

import socket
import threading

from detent.worker.supervisor.channel import Channel
from tests.deadlines import scaled


def test_nobody_waits_for_a_side_that_does_not_read() -> None:
    """J5: a child whose interpreter is held reads nothing. A message to it used to block the thread that renews the
    leases of all children. What was kept comes whole and in order when it reads again; what was refused does not."""
    channel, theirs = Channel.pair()
    taken = []

    def post() -> None:
        for n in range(3_000):
            if channel.post("cancel", n=n, attempts=[[1, 2]] * 100):
                taken.append(n)

    poster = threading.Thread(target=post, daemon=True)
    poster.start()
    poster.join(scaled(30))
    assert not poster.is_alive(), "it waits for the other side"
    assert 0 < len(taken) < 3_000
    assert not channel.is_flushed

    heard: list[int] = []
    reader = threading.Thread(target=lambda: heard.extend(one["n"] for one in Channel(theirs).messages()), daemon=True)
    reader.start()
    assert channel.send("last", n=-1)
    channel.close()
    reader.join(scaled(30))
    theirs.close()
    assert heard == [*taken, -1]


def test_a_side_that_is_gone_is_no_error() -> None:
    channel, theirs = Channel.pair()
    theirs.close()
    assert not channel.send("lease", id=1)
    assert not channel.post("lost", leases=[1])
    channel.close()
    assert not channel.post("lost", leases=[1])


def test_senders_do_not_mix_their_messages() -> None:
    """Long ones, from several threads, over a socket with little room."""
    channel, theirs = Channel.pair()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    threads = [
        threading.Thread(target=lambda n=n: [channel.send("done", n=n, words="x" * 50_000) for _ in range(20)])
        for n in range(4)
    ]
    heard: list[int] = []
    reader = threading.Thread(target=lambda: heard.extend(one["n"] for one in Channel(theirs).messages()), daemon=True)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join(scaled(30))
    channel.close()
    reader.join(scaled(30))
    theirs.close()
    assert sorted(heard) == sorted([*range(4)] * 20)
