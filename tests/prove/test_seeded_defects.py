"""P7: seeded defects fit the code, and one that is found, one that is not and one that does not fit are told apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from prove.defects import _ALL, CHEAPEST, DEFECTS, Defect, Edit, PatchError, planted
from prove.defects.defect import SOURCE, edited
from prove.defects.named_tests import RanTests
from prove.defects.trial import Trial, try_defect
from prove.figures.seeded_defects import tally_of
from tests.deadlines import scaled

pytestmark = pytest.mark.timeout(600)
KNOWN = DEFECTS["expired and claimed"]
HARMLESS = Edit("store/jobs/sqlite_claim.py", "Claim in one step, and read", "Claim in one step and read")
MOVED = Edit(HARMLESS.file, "a line that is not there", "")


def test_every_defect_fits_the_code() -> None:
    for defect in DEFECTS.values():
        for edit in defect.edits:
            edited(edit)


def test_there_are_defects_of_every_sort() -> None:
    """F7: at least sixty; each room has some, and a commit tries ten of several rooms."""
    assert len(DEFECTS) == len(_ALL) >= 60
    rooms = Counter(defect.room for defect in DEFECTS.values())
    assert set(rooms) == {"store", "worker", "services", "batch", "pipeline", "workflows", "schedules", "HTTP"}
    assert Counter(defect.proof.kind for defect in DEFECTS.values())["simulation"] >= 15
    assert len(CHEAPEST) == 10
    assert len({DEFECTS[name].room for name in CHEAPEST}) >= 2


def test_a_copy_differs_in_the_changed_file_alone(tmp_path: Path) -> None:
    before = (SOURCE / HARMLESS.file).read_text()
    with planted((HARMLESS,)) as environment:
        copy = Path(environment["PYTHONPATH"].split(":")[0]) / "detent"
        assert (copy / HARMLESS.file).read_text() == edited(HARMLESS) != before
        assert (copy / "store/jobs/sqlite_fold.py").samefile(SOURCE / "store/jobs/sqlite_fold.py")
    assert not copy.exists()
    assert (SOURCE / HARMLESS.file).read_text() == before
    with pytest.raises(PatchError, match="instead of 1"), planted((HARMLESS, MOVED)):
        pass


def test_a_defect_is_found_and_one_that_is_harmless_survives() -> None:
    found = try_defect(KNOWN, seed=1)
    assert found.verdict == "found", found.said
    assert "after enqueue" in found.said
    proof = replace(KNOWN.proof, seconds=scaled(2))
    assert try_defect(replace(KNOWN, edits=(HARMLESS,), proof=proof), seed=1).verdict == "survived"
    assert try_defect(replace(KNOWN, edits=(MOVED,)), seed=1).verdict == "does not fit"
    syntax = replace(HARMLESS, old="_READ = msgspec", new="_READ = = msgspec")
    assert try_defect(replace(KNOWN, edits=(syntax,)), seed=1).verdict == "broken"


def test_what_was_not_found_is_wrong_and_named() -> None:
    def tried(verdict: object) -> Trial:
        return Trial(KNOWN, verdict, "said", 1.0)  # type: ignore[arg-type]

    clean = tally_of([tried("found")] * 3)
    assert clean.is_clean
    assert clean.injected == {"defect in store": 3}
    assert clean.notes == ["3 found by every order of moves, in 1.0 s each (median)"]
    for verdict in ("survived", "broken", "does not fit"):
        tally = tally_of([tried("found"), tried(verdict)])
        assert tally.wrong == 1
        assert "the defect 'expired and claimed'" in tally.stories[0]


def test_tests_count_only_if_all_of_them_ran_and_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    defect: Defect = DEFECTS["portion twice"]
    names = frozenset(defect.proof.names)

    def found(ran: RanTests) -> str:
        monkeypatch.setattr("prove.defects.named_tests.run_tests", lambda _: ran)
        return defect.proof.find(1, 1.0)

    assert found(RanTests(names, are_all=True))
    assert not found(RanTests(names, are_all=False))
    assert not found(RanTests(frozenset(), are_all=True))
    assert not found(RanTests(names | {"another"}, are_all=True))
