"""`python -m prove run`, `figure` and `report`."""

from __future__ import annotations

import argparse
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from prove.defects import DEFECTS
from prove.defects.trial import FOUND, SURVIVED
from prove.figure import Budget, Tier
from prove.figures import FIGURES, figures_named
from prove.report import publish
from prove.required_points import summary
from prove.results import ROOT, Results
from prove.runner import run_figure, run_tier
from prove.soak.run import KINDS, soak
from prove.table import circumstances, findings, terminal_table

__all__ = ["KEPT", "add_commands"]

KEPT = ROOT / "build/prove.json"
_NOT_CLEAN = 1
_TIERS = get_args(Tier)


def add_commands(commands: Any, say: Callable[[str], None]) -> None:
    """Add the commands to a parser. Each sets `call`, which takes the options and returns the exit code."""
    run = commands.add_parser("run", help="run the figures of a tier and print their table (make prove)")
    run.add_argument("--tier", choices=_TIERS, default="commit")
    run.add_argument("--seed", type=int, help="decides everything that is random (default: the tier commit has one "
                     "seed, the others draw a new one)")  # fmt: skip
    run.add_argument("--only", type=_named, metavar="P5,P6", help="run only these figures, by id or module")
    run.add_argument("--to", type=Path, default=KEPT, metavar="FILE", help=f"(default: {KEPT.relative_to(ROOT)})")
    run.set_defaults(call=lambda options: _run(options, say))
    figure = commands.add_parser("figure", help="run one figure in this process and write its tally")
    figure.add_argument("figure", type=_named)
    figure.add_argument("--tier", choices=_TIERS, default="commit")
    figure.add_argument("--seed", type=int, default=1)
    figure.add_argument("--seconds", type=float, help="(default: what the tier gives it)")
    figure.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    figure.add_argument("--to", type=Path, metavar="FILE", required=True)
    figure.set_defaults(call=_figure)
    trial = commands.add_parser("trial", help="run the proof that must find a defect, which is planted already")
    trial.add_argument("defect")
    trial.add_argument("--seed", type=int, default=1)
    trial.add_argument("--seconds", type=float, required=True)
    trial.set_defaults(call=lambda options: _trial(options, say))
    long = commands.add_parser("soak", help="a steady load with faults for hours: nothing may grow (make soak)")
    long.add_argument("--hours", type=float, default=1.0, help="fractions are allowed, such as 0.05")
    long.add_argument("--database", choices=KINDS, action="append", help="(repeatable; default: both at once)")
    long.add_argument("--seed", type=int, default=1, help="decides the faults")
    long.add_argument("--to", type=Path, default=ROOT / "build/soak", metavar="FOLDER", help="(default: build/soak)")
    long.set_defaults(call=lambda options: _soak(options, say))
    report = commands.add_parser("report", help="put the last run of all figures into docs/reliability.md")
    report.add_argument("results", type=Path, nargs="?", default=KEPT, metavar="FILE")
    report.set_defaults(call=lambda options: _report(options, say))


def _run(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    seed = options.seed if options.seed is not None else _seed_of(options.tier)
    results = run_tier(options.tier, seed, options.only or FIGURES, say=say)
    results.write(options.to)
    for text in findings(results):
        say(f"\n{text}")
    say(f"\n{terminal_table(results)}\n\n{circumstances(results)}")
    say(summary(results.covered, options.tier))
    say("All clean." if results.is_clean else "NOT CLEAN.")
    return 0 if results.is_clean else _NOT_CLEAN


def _seed_of(tier: Tier) -> int:
    """The same for every commit, so that a change is judged by itself; a new one for the longer tiers."""
    return 1 if tier == "commit" else random.SystemRandom().randrange(1, 1_000_000)


def _figure(options: argparse.Namespace) -> int:
    (figure,) = options.figure
    seconds = figure.seconds(options.tier) if options.seconds is None else options.seconds
    run_figure(figure, Budget(options.tier, options.seed, seconds, options.processes), options.to)
    return 0


def _trial(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    found = DEFECTS[options.defect].proof.find(options.seed, options.seconds)
    say(found)
    return FOUND if found else SURVIVED


def _soak(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    found = soak(options.hours, options.database or KINDS, seed=options.seed, to=options.to, say=say)
    for kind, sentences in found.items():
        for sentence in sentences:
            say(f"{kind}: {sentence}")
        say(f"{kind}: {'NOT CLEAN' if sentences else 'flat, nothing lost, doubled or stuck, and verify is clean'}.")
    say(f"Samples, plots and logs: {options.to}")
    return _NOT_CLEAN if any(found.values()) else 0


def _report(options: argparse.Namespace, say: Callable[[str], None]) -> int:
    results = Results.read(options.results)
    if left_out := [figure.id for figure in FIGURES if figure.id not in {one.id for one in results.results}]:
        say(f"{options.results} lacks the figures {', '.join(left_out)}. Run `make prove` without `--only` first.")
        return _NOT_CLEAN
    publish(results)
    return 0


def _named(names: str) -> Any:
    try:
        return figures_named(names)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
