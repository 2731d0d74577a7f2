"""`python -m prove`: the figures of `make prove`, and schedules of the simulation by seed."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from prove.commands import add_commands
from prove.defects import DEFECTS, planted
from prove.simulation.exploration import Explored, explored, story_of

__all__ = ["BROKEN", "main"]

BROKEN = 3
"""The exit code if a promise was broken; any other error has another one."""
_SAME_ORDER = {"PYTHONHASHSEED": "0"}
"""Sets of strings have the same order in every run."""


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for; return the exit code."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        command = [sys.executable, "-m", "prove", *arguments]
        return subprocess.run(command, env={**os.environ, **_SAME_ORDER}, check=False).returncode
    options = _parser().parse_args(arguments)
    if options.command != "simulate":
        return int(options.call(options))
    if options.defect is not None:
        return _with_defect(options)
    if options.replay is not None:
        return _replay(options.replay, options.shrink)
    return _simulate(options)


def _simulate(options: argparse.Namespace) -> int:
    """Run the schedules of seeds in a row. Stops at the first batch with a failure, and tells its story."""
    began_at = time.monotonic()
    found = Explored()
    for group in explored(options.seed, options.schedules, options.processes):
        found.add(group)
        if found.failed:
            break
    seconds = time.monotonic() - began_at
    speed = f"{seconds:.0f} s, {found.schedules / seconds:.0f} schedules/s"
    _say(f"{found.schedules} schedules, {found.calls} calls of the database, {speed}")
    if found.failed:
        seed, _ = found.failed[0]
        _say(f"seed {seed} failed")
        return _replay(seed, options.shrink)
    return 0


def _replay(seed: int, shrink: float) -> int:
    """Run the schedule of a seed again. If it fails, make it as short as possible and tell its story."""
    from prove.simulation.schedule import shared_simulator

    story = story_of(seed, shrink)
    for line in story:
        _say(line)
    if story:
        return BROKEN
    outcome = shared_simulator().run(seed)
    _say(f"seed {seed}: all promises held in {outcome.steps} turns and {outcome.seconds:.0f} virtual seconds")
    return 0


def _with_defect(options: argparse.Namespace) -> int:
    """Run the same with a defect in the package. Exit code 0 means that it was found."""
    defect = DEFECTS[options.defect]
    _say(f"defect {defect.name}: {defect.what}")
    command = [sys.executable, "-m", "prove", "simulate", "--seed", str(options.seed), "--shrink", str(options.shrink)]
    command += ["--schedules", str(options.schedules), "--processes", str(options.processes)]
    command += [] if options.replay is None else ["--replay", str(options.replay)]
    with planted(defect.edits) as environment:
        found = subprocess.run(command, env=environment, check=False).returncode == BROKEN
    _say("found" if found else "NOT FOUND")
    return 0 if found else 1


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a command line program


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m prove", description="Prove what Detent promises.")
    commands = parser.add_subparsers(dest="command", required=True)
    add_commands(commands, _say)
    one = commands.add_parser("simulate", help="real workers on a database in memory, with faults, by seed")
    one.add_argument("--schedules", type=int, default=1000, help="how many seeds in a row")
    one.add_argument("--seed", type=int, default=1, help="the first of them")
    one.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    one.add_argument("--replay", type=int, metavar="SEED", help="run this one again and tell its story if it fails")
    one.add_argument("--shrink", type=float, default=60.0, metavar="SECONDS", help="time to make a story shorter")
    simulated = sorted(defect.name for defect in DEFECTS.values() if defect.proof.kind == "simulation")
    one.add_argument("--defect", choices=simulated, help="plant a defect, which must be found")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
