"""`detent figures`."""

from __future__ import annotations

from tests.cli.shell import Shell, World


def test_figures_of_a_task(shell: Shell, world: World) -> None:
    """M1: success rate, durations and transitions."""
    world.succeeded()
    world.succeeded()
    world.pending()
    ended = shell.run("figures", "--since", "2h")
    assert ended.code == 0, ended.err
    assert "SUCCEEDED" in ended.out
    assert "100.00 %" in ended.out
    found = shell.run("figures", "--json").json
    (task,) = found["tasks"]
    assert (task["succeeded"], task["failed"], task["success_rate"]) == (2, 0, 1.0)
    (attempts,) = found["attempts"]
    assert (attempts["outcome"], attempts["attempts"]) == ("done", 2)
    assert {(one["from_state"], one["to_state"]): one["moves"] for one in found["transitions"]} == {
        ("pending", "running"): 2,
        ("running", "succeeded"): 2,
    }
    assert (found["batches"], found["ops"], found["ops_success_rate"]) == ([], [], None)
    assert shell.run("figures", "--task", "other", "--json").json["tasks"] == []


def test_without_attempts_there_is_a_note(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("figures")
    assert (ended.code, "no attempt has ended" in ended.err) == (0, True)


def test_rates(shell: Shell, world: World) -> None:
    """M1: how many jobs moved in each minute."""
    world.succeeded()
    ended = shell.run("rates")
    assert ended.code == 0, ended.err
    assert "WAITED P95" in ended.out
    assert "success: 100.00 %" in ended.out
    found = shell.run("rates", "--step", "hour", "--json").json
    assert [point["moves"] for point in found["points"] if point["moves"]] == [{"succeeded": 1}]
    assert shell.run("rates", "--step", "day").code == 2
