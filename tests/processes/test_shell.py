"""Shell tasks: commands, what they say, and how they and all they started end."""

from __future__ import annotations

import signal

import pytest

from detent import errors
from tests.deadlines import scaled
from tests.processes.worker_processes import Bench, is_alive, kill, until


def test_what_a_command_says_is_on_record_line_by_line(shop: Bench) -> None:
    """W2: its output becomes events, its exit code the result. What reads alike is kept twice, bytes are replaced."""
    job = shop.send("speak")
    assert shop.rests(job, "succeeded").result == 0
    lines = shop.lines(job)
    assert [line for line in lines if line[0] == "warning"] == [("warning", "problem")]
    first, second, again, odd, long, last = (message for level, message in lines if level == "info")
    assert (first, second, again) == ("first", "second", "second")
    assert odd == "bytes \ufffd and \ufffd nul"
    assert long.startswith("xxxx")
    assert long.endswith("… cut")
    assert len(long) < 9000
    assert last == "no end"


def test_arguments_are_typed_and_become_words(shop: Bench) -> None:
    job = shop.send("words", word="it's; $HOME", times=2)
    shop.rests(job, "succeeded")
    assert shop.lines(job) == [("info", "it's; $HOME it's; $HOME")]
    with pytest.raises(errors.InvalidArguments):
        shop.send("words", word=7)


def test_a_command_sees_what_it_was_given_and_no_more(shop: Bench) -> None:
    """W2, S4: the worker's own environment, with its secrets, stays with the worker."""
    job, where = shop.send("env"), shop.send("where")
    shop.rests(job, "succeeded")
    seen = dict(message.split("=", 1) for _, message in shop.lines(job))
    assert seen.pop("PATH")
    assert seen["GREETING"] == "hello"
    assert (seen["DETENT_JOB_ID"], seen["DETENT_ATTEMPT"]) == (str(job.id), "1")
    assert set(seen) <= {"GREETING", "DETENT_JOB_ID", "DETENT_ATTEMPT", "DETENT_EFFECT_KEY", "PWD", "LC_CTYPE", "_"}
    shop.rests(where, "succeeded")
    assert shop.lines(where) == [("info", "/")]


def test_a_flood_is_read_and_not_kept(shop: Bench) -> None:
    job = shop.send("flood")
    shop.rests(job, "succeeded")
    assert [message for _, message in shop.lines(job)] == ["y", "y", "y", "more than 3 lines: the rest is not kept"]


@pytest.mark.parametrize(("task", "said"), [("exit_7", ("exit code 7", "sorry")), ("no_such", ("No such file",))])
def test_any_other_exit_code_is_an_error_with_the_last_words(shop: Bench, task: str, said: tuple[str, ...]) -> None:
    """W2: non-zero is a failure."""
    job = shop.send(task)
    error = str(shop.rests(job, "quarantined").error)
    assert all(words in error for words in said)


def test_what_a_command_leaves_behind_ends_with_it(shop: Bench) -> None:
    gate = shop.gate()
    job = shop.send("leave_behind", gate=str(gate))
    assert shop.rests(job, "succeeded").result == 0
    assert not any(map(is_alive, gate.entered()))


def test_a_cancel_stops_the_whole_group(shop: Bench) -> None:
    """W2, J8: SIGTERM, then SIGKILL after the grace: also those who do not listen, in whatever session. What it said
    is on record while it runs."""
    gate = shop.gate()
    job = shop.send("tree", gate=str(gate))
    tree = gate.entered(3)
    until(lambda: shop.lines(job) == [("info", "planted")], "its line")
    assert job.refresh().state == "running"
    job.cancel(actor="ana")
    shop.rests(job, "cancelled")
    until(lambda: not any(map(is_alive, tree)), "the end of the tree")


def test_a_time_out_stops_the_whole_group_and_spares_the_worker(shop: Bench) -> None:
    """W2, J12."""
    before = shop.rests(shop.send("which_process"), "succeeded").result
    gate = shop.gate()
    job = shop.send("tree_8s", gate=str(gate))
    shop.rests(job, "quarantined")
    assert shop.outcomes(job) == ["timed_out"]
    until(lambda: not any(map(is_alive, gate.entered(3))), "the end of the tree")
    assert shop.rests(shop.send("which_process"), "succeeded").result == before


@pytest.mark.parametrize("whom", ["supervisor", "child", "stop"])
def test_nothing_of_a_command_survives_its_worker(sqlite_bench: Bench, whom: str) -> None:
    """W2: killed or stopped, supervisor or child: the guardian ends the group."""
    bench = sqlite_bench
    gate, here = bench.gate(), bench.gate()
    bench.send("tree", gate=str(gate))
    worker = bench.worker(grace=scaled(0.1))
    tree = gate.entered(3)
    if whom == "supervisor":
        kill(worker.process.pid)
    elif whom == "child":
        bench.send("hold", gate=str(here))
        kill(here.entered()[0])
    else:
        worker.signal(signal.SIGTERM)
        assert worker.ends() == 0
    until(lambda: not any(map(is_alive, tree)), "the end of the tree")
