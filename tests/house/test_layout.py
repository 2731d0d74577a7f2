"""tests/ mirrors src/: a folder of tests is named after the folder whose code it tests, or is one that cuts across."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
CUT_ACROSS = {
    "acceptance": "whole stories through the public surface",
    "benchmarks": "benchmarks/ still measures",
    "console": "the console in a real browser, and its types",
    "contract": "one module per verb of the store, in a folder per noun, on both databases",
    "demo": "`detent demo` as a user sees it",
    "docs": "the pages in docs/ are true",
    "examples": "the programs in examples/ run",
    "faults": "kills, lost answers, crashes, damage",
    "guards": "what the database itself refuses",
    "house": "the rules of HOUSE.md",
    "migrations": "making and upgrading a database",
    "mutants": "the tests notice a missing guard",
    "packaging": "what is published, as users install it",
    "plans": "what statements cost",
    "processes": "real workers",
    "prove": "prove/ still proves",
    "surface": "the public names",
    "twin": "both databases and a model, driven side by side",
    "typing": "what a type checker says about the public surface",
}


def folders(root: Path) -> set[str]:
    """Every folder below the root that holds Python files, as a path from the root."""
    return {path.parent.relative_to(root).as_posix() for path in root.rglob("*.py")} - {"."}


def complaints(tests: Path, package: Path) -> list[str]:
    """Folders of tests that mirror nothing, and rooms without tests."""
    rooms, tested = folders(package), folders(tests)
    strange = [path for path in tested if path.split("/")[0] not in CUT_ACROSS and path not in rooms]
    untested = {path.split("/")[0] for path in rooms} - {path.split("/")[0] for path in tested}
    return sorted([f"tests/{path} mirrors no folder of src" for path in strange]) + sorted(
        f"{room} has no folder in tests" for room in untested
    )


def test_tests_mirror_the_source() -> None:
    assert complaints(ROOT / "tests", ROOT / "src" / "detent") == []
    assert set(CUT_ACROSS) <= folders(ROOT / "tests"), "a folder that is gone is still listed"


def test_a_planted_fault_is_found(tmp_path: Path) -> None:
    for path in ("src/store/sqlite/a.py", "src/views/b.py", "tests/store/driver/c.py", "tests/house/deep/d.py"):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).touch()
    assert complaints(tmp_path / "tests", tmp_path / "src") == [
        "tests/store/driver mirrors no folder of src",
        "views has no folder in tests",
    ]
