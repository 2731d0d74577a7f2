"""The interpreter's switch interval: short for the loop, longer as long as any function is on a thread."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from detent.worker.child.executors.switch_interval import SwitchInterval


@pytest.fixture
def interval_kept() -> Iterator[None]:
    before = sys.getswitchinterval()
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("interval_kept")
def test_threads_are_hurried_less_than_the_loop() -> None:
    pace = SwitchInterval()
    on_the_loop = sys.getswitchinterval()
    with pace.for_threads():
        with pace.for_threads():
            among_threads = sys.getswitchinterval()
        assert sys.getswitchinterval() == among_threads > on_the_loop
    assert sys.getswitchinterval() == on_the_loop


@pytest.mark.usefixtures("interval_kept")
def test_a_thread_that_fails_leaves_too() -> None:
    pace = SwitchInterval()
    on_the_loop = sys.getswitchinterval()
    with pytest.raises(ZeroDivisionError), pace.for_threads():
        raise ZeroDivisionError
    assert sys.getswitchinterval() == on_the_loop
