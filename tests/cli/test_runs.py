"""`detent runs` for batches: from preview to roll-back."""

from __future__ import annotations

import csv
from collections.abc import Iterator

import pytest

from tests.cli.shell import Ended, Shell
from tests.deadlines import scaled

RULES = """
from dataclasses import dataclass
from pathlib import Path

from detent import Change, Context, Detent, Retry

app = Detent()


@app.batch(name="reprice", retry=Retry(0), tolerate=1)
@dataclass
class Reprice:
    percent: int

    def targets(self):
        return ["ring-1", "ring-2", "ring-3"]

    def preview(self, ref: str) -> Change[int]:
        return Change(before=100, after=100 - self.percent)

    def apply(self, ctx: Context, ref: str, change: Change[int]) -> None:
        if ref in Path("broken").read_text():
            raise RuntimeError(f"{ref} is broken")
        Path(ref).write_text(str(change.after))

    def revert(self, ctx: Context, ref: str, change: Change[int]) -> None:
        Path(ref).write_text(str(change.before))

    def observe(self, ref: str) -> int:
        return int(Path(ref).read_text()) if Path(ref).exists() else 100
"""


@pytest.fixture
def rules(sqlite_shell: Shell) -> Shell:
    """With the batch `reprice` in `rules:app`, and a shop in which ring-2 is broken. What the commands ask for is
    tested on both databases elsewhere (`tests/acceptance`); each of them is a process of its own, which takes time."""
    (sqlite_shell.directory / "rules.py").write_text(RULES)
    (sqlite_shell.directory / "broken").write_text("ring-2")
    return sqlite_shell


def runs(shell: Shell, *arguments: object) -> Ended:
    return shell.run("runs", *arguments, "--app", "rules:app", "--actor", "ana")


@pytest.fixture
def worker(rules: Shell) -> Iterator[None]:
    """A worker that runs during the test."""
    process = rules.start("worker", "rules:app")
    yield
    process.terminate()
    process.communicate(timeout=scaled(60))


@pytest.mark.usefixtures("worker")
def test_from_preview_to_roll_back(rules: Shell) -> None:
    """U2, B2, B4, B6, B9: preview, diff, export, apply, tolerated, retry-failed, reconcile, roll-back."""
    begun = runs(rules, "preview", "reprice", '{"percent": 10}', "--wait", "--timeout", "60s", "--json")
    assert (begun.code, begun.json["state"], begun.json["previewed"]) == (0, "preview", 3)
    run = begun.json["id"]
    assert runs(rules, "changes", run).rows[1][:4] == ["ring-1", "preview", "100", "90"]
    assert runs(rules, "export", run, "difference.csv").code == 0
    with (rules.directory / "difference.csv").open() as file:
        assert [row["after"] for row in csv.DictReader(file)] == ["90", "90", "90"]

    assert runs(rules, "apply", run).code == 2, "no terminal, and no --yes"
    applied = runs(rules, "apply", run, "--yes", "--wait", "--reason", "spring", "--json")
    assert (applied.code, applied.json["counts"]) == (0, {"applied": 2, "failed": 1}), "one failure is tolerated"
    assert (applied.json["state"], applied.json["tolerated"]) == ("partial", True)
    seen = runs(rules, "get", run, "--json").json
    assert seen["causes"] == [{"error": "RuntimeError: ring-2 is broken", "targets": 1, "example": "ring-2"}]
    assert [one["to_state"] for one in seen["transitions"]][-1] == "partial"
    assert [row[0] for row in runs(rules, "changes", run, "--errors").rows[1:]] == ["ring-2"]

    (rules.directory / "broken").write_text("")
    assert runs(rules, "retry-failed", run, "--only", "ring-2", "--yes", "--wait").code == 0
    assert [row[1:4] for row in runs(rules, "list", "--name", "reprice").rows[1:]] == [["batch", "reprice", "applied"]]

    (rules.directory / "ring-3").write_text("1")
    looked = runs(rules, "reconcile", run, "--json")
    assert (looked.code, looked.json["mismatches"]) == (1, [{"ref": "ring-3", "expected": 90, "actual": 1}])
    assert runs(rules, "mismatches", run).rows[1] == ["ring-3", "90", "1"]

    back = runs(rules, "roll-back", run, "--yes", "--wait", "--reason", "too cheap", "--json")
    assert (back.json["state"], back.json["conflicts"]) == ("applied", 1)
    assert runs(rules, "changes", run, "--errors").rows[1][0] == "ring-3"
    assert runs(rules, "roll-back", run, "--yes", "--wait", "--overwrite", "--reason", "too cheap").code == 0
    assert (rules.directory / "ring-3").read_text() == "100"
    again = runs(rules, "roll-back", run, "--yes")
    assert (again.code, "final" in again.err) == (4, True)


def test_an_id_is_called_by_its_noun(rules: Shell) -> None:
    """A bad id of a run was called a job id, and a batch run was reported as missing by commands for pipeline runs."""
    for noun, verb in (("run", "get"), ("run", "wait"), ("operation", "get")):
        ended = rules.run(f"{noun}s", verb, "x")
        assert (ended.code, ended.err) == (2, f"detent: {noun} id: found 'x'; allowed: a whole number below 2^63\n")
    run = runs(rules, "preview", "reprice", '{"percent": 1}', "--json").json["id"]
    ended = rules.run("runs", "partitions", run)
    assert (ended.code, "is a batch run; this command is for pipeline runs" in ended.err) == (3, True)
    assert rules.run("runs", "events", run).err == "no events\n"


def test_refusals_name_the_cause(rules: Shell) -> None:
    unknown = runs(rules, "preview", "nothing")
    assert (unknown.code, "no batch 'nothing' is declared here" in unknown.err) == (3, True)
    wrong = runs(rules, "preview", "reprice", '{"percent": "ten"}')
    assert (wrong.code, "percent" in wrong.err) == (2, True)
    misspelt = runs(rules, "preview", "reprice", '{"percent": 10, "rouding": 1}')
    assert (misspelt.code, "the field 'rouding'; allowed: " in misspelt.err) == (2, True)
    run = runs(rules, "preview", "reprice", '{"percent": 1}', "--json").json["id"]
    early = runs(rules, "apply", run, "--yes")
    assert (early.code, "previewed" in early.err) == (4, True)
    late = runs(rules, "wait", run, "--timeout", "0.1s")
    assert (late.code, "still preview" in late.err) == (124, True)
    without = rules.run("runs", "apply", run, "--yes")
    assert (without.code, "--app" in without.err) == (2, True)
