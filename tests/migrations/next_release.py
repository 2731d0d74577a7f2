"""The next release: a copy of the package with one more state, transitions, one more column and a higher number."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.deadlines import scaled

__all__ = ["NEXT", "NextRelease"]

ROOT = Path(__file__).parents[2]
NEXT = "99.0.0"

STATE = '        "cancelled": "Stopped on request, expired before it began, or discarded.",\n'
MORE_STATES = '        "parked": "Set aside until a person retries it.",\n'
TRANSITION = '        T("failed", "quarantined", "force", "operator", "Quarantined by an operator, with a reason."),\n'
MORE_TRANSITIONS = """\
        T("pending", "parked", "force", "operator", "Set aside by hand, with a reason."),
        T("parked", "pending", "retry", "client", "A client sends it through again."),
"""
RESTS = 'rests=frozenset({"failed", "quarantined", "cancelled"})'
MORE_RESTS = 'rests=frozenset({"failed", "quarantined", "cancelled", "parked"})'
COLUMN = "-- oldest code: 1\nALTER TABLE {prefix}job ADD COLUMN note text;\n"


class NextRelease:
    """Runs code in a process of its own, with the next release."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        shutil.copytree(ROOT / "src", self.source, ignore=shutil.ignore_patterns("*.pyc.*", "*.tmp"))

    def edit(self, file: str, old: str, new: str) -> None:
        """Change the text of a file, which must have it once."""
        path = self.source / "detent" / file
        text = path.read_text()
        assert text.count(old) == 1, f"{file}: {old}"
        path.write_text(text.replace(old, new))

    def with_number(self) -> NextRelease:
        """Give it a higher number."""
        numbers = ", ".join(NEXT.split("."))
        path = self.source / "detent" / "model" / "database_facts.py"
        lines = [
            f"RELEASE = ({numbers})" if line.startswith("RELEASE") else line for line in path.read_text().split("\n")
        ]
        path.write_text("\n".join(lines))
        return self

    def with_state(self) -> NextRelease:
        """Declare one more state of jobs, with a way there and back."""
        self.edit("lifecycle/library.py", STATE, STATE + MORE_STATES)
        self.edit("lifecycle/library.py", TRANSITION, TRANSITION + MORE_TRANSITIONS)
        path = self.source / "detent" / "lifecycle" / "library.py"
        path.write_text(path.read_text().replace(RESTS, MORE_RESTS, 1))
        return self

    def with_column(self) -> NextRelease:
        """Add a migration with one more column of jobs."""
        for dialect, prefix in (("postgres", "detent."), ("sqlite", "detent_")):
            file = self.source / "detent" / "store" / dialect / "schema" / "0002_note.sql"
            file.write_text(COLUMN.format(prefix=prefix))
        return self

    def start(self, url: str, code: str) -> subprocess.Popen[str]:
        """Run `code` with `store` open on the database; it prints lines of JSON."""
        script = (
            "import json\nfrom contextlib import closing\nfrom detent.store.open import open_store\n"
            f"with closing(open_store({url!r})) as store:\n"
        ) + "\n".join(f"    {line}" for line in code.splitlines())
        return subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=self.source,
            env=os.environ | {"PYTHONPATH": str(self.source), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, url: str, code: str) -> list[Any]:
        """Run `code` to its end and return what it printed."""
        with self.start(url, code) as process:
            out, err = process.communicate(timeout=scaled(60))
        assert process.returncode == 0, err
        return [json.loads(line) for line in out.splitlines()]

    def migrate(self, url: str) -> list[str]:
        """Bring the database up to this release; return what was applied."""
        (applied,) = self.run(url, "print(json.dumps(store.migrate()))")
        found: list[str] = applied
        return found
