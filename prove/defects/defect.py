"""What a seeded defect is: the package with a few lines changed, and the proof that has to notice.

The text that is changed must be found, so the list cannot rot in silence: if the code moves, its entry moves with it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prove.defects.proofs import Proof

__all__ = ["SOURCE", "Defect", "Edit", "PatchError", "Room", "edited", "planted"]

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "detent"
Room = Literal["store", "worker", "services", "batch", "pipeline", "workflows", "schedules", "HTTP"]


class PatchError(Exception):
    """A change does not fit the code any more."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `old`, which is in the file exactly `times` times, with `new`. The file is a path below src/detent."""

    file: str
    old: str
    new: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Defect:
    """A name, what is wrong then, the changes, and the proof that must find it."""

    name: str
    room: Room
    what: str
    edits: tuple[Edit, ...]
    proof: Proof


def edited(edit: Edit) -> str:
    """Return the text of the file with the change made. Raises `PatchError` if it does not fit."""
    text = (SOURCE / edit.file).read_text()
    return _changed(text, edit)


def _changed(text: str, edit: Edit) -> str:
    if text.count(edit.old) != edit.times or edit.old == edit.new:
        raise PatchError(f"{edit.file} has {text.count(edit.old)} times, instead of {edit.times}: {edit.old!r}")
    return text.replace(edit.old, edit.new)


@contextmanager
def planted(edits: Sequence[Edit]) -> Iterator[dict[str, str]]:
    """Make a copy of the package with the changes in it, of links to what is unchanged. Yield the environment in which
    Python finds that copy. Raises `PatchError` if a change does not fit."""
    texts: dict[Path, str] = {}
    for edit in edits:
        text = texts.get(Path(edit.file)) or (SOURCE / edit.file).read_text()
        texts[Path(edit.file)] = _changed(text, edit)
    with tempfile.TemporaryDirectory(prefix="detent-defect-") as folder:
        copy = Path(folder)
        _lay_over(SOURCE, copy / "detent", texts)
        yield {
            **os.environ,
            "PYTHONPATH": f"{copy}{os.pathsep}{ROOT}",
            # The compiled files that are linked to must stay as they are.
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONHASHSEED": "0",
        }


def _lay_over(source: Path, target: Path, texts: Mapping[Path, str]) -> None:
    """Make a folder of the files in `texts`, whose paths are below it, and of links to everything else in `source`."""
    target.mkdir()
    for entry in source.iterdir():
        inside = {path: text for path, text in texts.items() if path.parts[0] == entry.name}
        if not inside:
            (target / entry.name).symlink_to(entry)
        elif entry.is_dir():
            deeper = {path.relative_to(entry.name): text for path, text in inside.items()}
            _lay_over(entry, target / entry.name, deeper)
        else:
            (target / entry.name).write_text(inside[Path(entry.name)])
