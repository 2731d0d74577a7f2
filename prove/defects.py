"""Defects that the proofs must find: the package without one of its guards.

A defect is a change of the text of the package. The text must be found, so the list cannot rot in silence.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DEFECTS", "Defect", "planted"]

_SOURCE = Path(__file__).parents[1] / "src"
_ENDINGS = "store/jobs/sqlite_endings.py"


@dataclass(frozen=True, slots=True)
class Defect:
    """A name, what is wrong then, and the changes: a file below src/detent, a text that is in it once, and another."""

    name: str
    what: str
    edits: tuple[tuple[str, str, str], ...]


DEFECTS = {
    defect.name: defect
    for defect in (
        Defect(
            "fence",
            "an attempt may commit and finish although another one is current",
            (
                (_ENDINGS, "if found is not None and found[0] == attempt and found[1] > now:", "if found is not None:"),
                (
                    _ENDINGS,
                    "AND attempt = :attempt AND state = 'running' AND committed_at IS NULL\n   AND (SELECT",
                    "AND state = 'running' AND committed_at IS NULL\n   AND (SELECT",
                ),
                (_ENDINGS, "AND state = 'running' AND attempt = coalesce(:attempt, attempt)", "AND state = 'running'"),
            ),
        ),
        Defect(
            "lease",
            "an attempt may commit and record steps although its lease has expired",
            (
                (_ENDINGS, "and found[0] == attempt and found[1] > now:", "and found[0] == attempt:"),
                (
                    _ENDINGS,
                    "FROM detent_lease l WHERE l.id = lease_id) > :clock",
                    "FROM detent_lease l WHERE l.id = lease_id) > 0",
                ),
                (_ENDINGS, 'return LeaseLost(holding.job_id, holding.attempt, "its lease has expired")', "return None"),
                (
                    "store/sqlite/verb_base.py",
                    "if job.lease_expires_at is None or job.lease_expires_at <= now:",
                    "if False:",
                ),
            ),
        ),
        Defect(
            "reaper",
            "the reaper takes leases away that have not expired",
            (
                (_ENDINGS, "WHERE expires_at <= ? AND NOT", "WHERE ? IS NOT NULL AND NOT"),
                (
                    _ENDINGS,
                    "WHERE l.id = ? AND l.expires_at <= ?",
                    "WHERE l.id = ? AND ? IS NOT NULL",
                ),
            ),
        ),
        Defect(
            "dead child",
            "a job whose end was not written yet is repeated when its process dies",
            (
                (
                    "worker/supervisor/dead_child.py",
                    'if outcome in ("cancelled", "released") and job is not None',
                    'if entry is not None and outcome in ("cancelled", "released") and job is not None',
                ),
            ),
        ),
        Defect(
            "clock",
            "a move may be earlier than the end of the attempt before it",
            (("store/sqlite/verb_base.py", "CASE WHEN j.state = 'pending' AND j.ended > 0", "CASE WHEN j.ended < 0"),),
        ),
    )
}


@contextmanager
def planted(defect: Defect) -> Iterator[dict[str, str]]:
    """Copy the package with the defect in it. Yields the environment in which Python finds that copy."""
    with tempfile.TemporaryDirectory(prefix="detent-defect-") as folder:
        copy = Path(folder)
        shutil.copytree(
            _SOURCE / "detent", copy / "detent", ignore=shutil.ignore_patterns("__pycache__", "console_files")
        )
        for file, old, new in defect.edits:
            path = copy / "detent" / file
            text = path.read_text()
            assert text.count(old) == 1, f"{file}: the guard has moved: {old!r}"
            path.write_text(text.replace(old, new))
        yield {**os.environ, "PYTHONPATH": f"{copy}{os.pathsep}{Path(__file__).parents[1]}"}
