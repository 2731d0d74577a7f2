"""The pipe that a supervisor's main thread waits for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

from detent.worker.supervisor.wakeup_pipe import WakeupPipe

PATIENCE = 60.0


def test_rung_before_it_is_waited_for_it_is_heard_once() -> None:
    pipe = WakeupPipe()
    for _ in range(100_000):
        pipe.wake()
    assert pipe.wait(PATIENCE)
    assert not pipe.wait(0.0)


def test_another_thread_rings() -> None:
    pipe = WakeupPipe()
    waker = threading.Thread(target=pipe.wake)
    waker.start()
    assert pipe.wait(PATIENCE)
    waker.join()


SIGNALLED = """
import os, signal
from detent.worker.supervisor.wakeup_pipe import WakeupPipe

pipe = WakeupPipe()
heard = []
signal.signal(signal.SIGCHLD, lambda *_: None)
signal.signal(signal.SIGTERM, lambda *_: (heard.append("SIGTERM"), pipe.wake()))
pipe.wake_on_signals()
if os.fork() == 0:
    os._exit(0)
assert pipe.wait(60.0)
os.wait()
while pipe.wait(0.0):
    pass
print("waiting", flush=True)
assert pipe.wait(60.0)
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
