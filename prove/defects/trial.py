"""The trial of a defect: it is planted, and its proof runs in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Literal

from prove.defects.defect import ROOT, Defect, PatchError, planted

__all__ = ["FOUND", "SURVIVED", "Trial", "try_defect"]

FOUND = 3
"""The exit code of a proof that has found something. Any other error has another one."""
SURVIVED = 0
_TAIL = 2000
_GRACE = 120.0
"""Seconds that a process may take above those of its proof."""
Verdict = Literal["found", "survived", "broken", "does not fit"]


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of it: `found` is as it should be. `said` is the finding, or what went wrong."""

    defect: Defect
    verdict: Verdict
    said: str
    seconds: float

    def __str__(self) -> str:
        why = {
            "found": "was found",
            "survived": f"was not found by its proof ({self.defect.proof.kind})",
            "broken": "made its proof break down, which proves nothing",
            "does not fit": "does not fit the code any more",
        }[self.verdict]
        return f"the defect '{self.defect.name}' ({self.defect.what}) {why}: {self.said}"


def try_defect(defect: Defect, seed: int) -> Trial:
    """Plant a defect, and run its proof."""
    began_at = time.monotonic()
    seconds = defect.proof.seconds
    command = [sys.executable, "-m", "prove", "trial", defect.name, "--seed", str(seed), "--seconds", str(seconds)]
    verdict: Verdict
    try:
        with planted(defect.edits) as environment:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=seconds + _GRACE,
                check=False,
            )
    except PatchError as error:
        verdict, said = "does not fit", str(error)
    except subprocess.TimeoutExpired:
        verdict, said = "broken", f"it did not end within {seconds + _GRACE:.0f} s"
    else:
        by_code: dict[int, Verdict] = {FOUND: "found", SURVIVED: "survived"}
        verdict = by_code.get(done.returncode, "broken")
        said = (done.stdout if verdict == "found" else done.stdout + done.stderr)[-_TAIL:].strip()
    return Trial(defect, verdict, said, time.monotonic() - began_at)
