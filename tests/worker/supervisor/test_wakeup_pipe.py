"""The bell that a supervisor's main thread waits for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

from detent.worker.supervisor.wakeup_pipe import WakeupPipe

PATIENCE = 60.0


def test_rung_before_it_is_waited_for_it_is_heard_once() -> None:
    bell = WakeupPipe()
    for _ in range(100_000):
        bell.ring()
    assert bell.wait(PATIENCE)
    assert not bell.wait(0.0)


def test_another_thread_rings() -> None:
    bell = WakeupPipe()
    ringer = threading.Thread(target=bell.ring)
    ringer.start()
    assert bell.wait(PATIENCE)
    ringer.join()


SIGNALLED = """
import os, signal
from detent.worker.supervisor.wakeup_pipe import WakeupPipe

bell = WakeupPipe()
heard = []
signal.signal(signal.SIGCHLD, lambda *_: None)
signal.signal(signal.SIGTERM, lambda *_: (heard.append("SIGTERM"), bell.ring()))
bell.rings_by_signals()
if os.fork() == 0:
    os._exit(0)
assert bell.wait(60.0)
os.wait()
while bell.wait(0.0):
    pass
print("waiting", flush=True)
assert bell.wait(60.0)
print(heard, flush=True)
"""


def test_signals_ring() -> None:
    """W1: the end of a child, and being told to stop, are news at once."""
    with subprocess.Popen([sys.executable, "-c", SIGNALLED], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        os.kill(process.pid, signal.SIGTERM)
        assert process.stdout.readline() == "['SIGTERM']\n"
        assert process.wait(PATIENCE) == 0
