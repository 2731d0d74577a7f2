"""The next release: a copy of the package with a higher number and what its user lets it have: one more state and its
transitions, more columns, a new version of a function, another kind of step."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from prove.results import ROOT

__all__ = ["NEXT", "NextRelease"]

NEXT = "99.0.0"
_SECONDS_MAX = 600.0

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
_ONE_BY_ONE = (
    "-- one by one\nCREATE INDEX CONCURRENTLY IF NOT EXISTS job_note ON detent.job (note) WHERE note IS NOT NULL;\n"
)
_ON_SQLITE = "CREATE INDEX detent_job_note ON detent_job (note) WHERE note IS NOT NULL;\n"
TABLES = ("workflow", "workflow_step", "workflow_step_begun", "workflow_wait", "workflow_signal", "child_group")
FUNCTION = re.compile(r"(-- step_record_one: .*?END \$\$;\n)", re.DOTALL)
NOTE = "by the next release"
RECORDS_SLEEP = """\
                holds = run.new(path, "sleep", value="null")
"""
NOTES_SLEEP = """\
            run.put_off(run.new(f"{path}~note", "note", value="null"))
"""


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

    def with_column(self, *, demands_newer_code: bool = False) -> NextRelease:
        """Add a migration with one more column of jobs."""
        text = COLUMN.partition("\n")[2] if demands_newer_code else COLUMN
        for dialect, prefix in (("postgres", "detent."), ("sqlite", "detent_")):
            file = self.source / "detent" / "store" / dialect / "schema" / "0002_note.sql"
            file.write_text(text.format(prefix=prefix))
        return self

    def with_index(self) -> NextRelease:
        """Add a migration with an index on the column that `with_column` adds."""
        for dialect, text in (("postgres", _ONE_BY_ONE), ("sqlite", _ON_SQLITE)):
            file = self.source / "detent" / "store" / dialect / "schema" / "0003_note_index.sql"
            file.write_text(f"-- oldest code: 1\n{text}")
        return self

    def with_columns_of_workflows(self) -> NextRelease:
        """Add a migration with one more column of each table of workflows, and write that of steps: by a new version of
        a function on PostgreSQL, by the statement itself on SQLite."""
        for dialect, prefix in (("postgres", "detent."), ("sqlite", "detent_")):
            file = self.source / "detent" / "store" / dialect / "schema" / "0003_notes.sql"
            added = "".join(f"ALTER TABLE {prefix}{table} ADD COLUMN note text;\n" for table in TABLES)
            file.write_text(f"-- oldest code: 1\n{added}")
        functions = self.source / "detent" / "store" / "workflows" / "functions" / "steps.sql"
        text = functions.read_text()
        (first,) = FUNCTION.findall(text)
        second = first.replace("step_record_one_v1", "step_record_one_v2")
        for old, new in (
            ("p_error text DEFAULT NULL\n", f"p_error text DEFAULT NULL, p_note text DEFAULT '{NOTE}'\n"),
            ("began_at, done_at, value, error)", "began_at, done_at, value, error, note)"),
            ("p_value, p_error\n", "p_value, p_error, p_note\n"),
        ):
            assert second.count(old) == 1, old
            second = second.replace(old, new)
        functions.write_text(text.replace(first, f"{first}\n{second}"))
        self.edit("store/workflows/postgres_steps.py", "step_record_one_v1(", "step_record_one_v2(")
        self.edit("store/workflows/sqlite_steps.py", "value,\n   error)\nSELECT", "value,\n   error, note)\nSELECT")
        self.edit("store/workflows/sqlite_steps.py", ":value, :error\n  FROM", f":value, :error, '{NOTE}'\n  FROM")
        return self

    def with_kind_of_step(self) -> NextRelease:
        """Declare one more kind of step, and record one beside each sleep: an older release need not know of it."""
        self._declare("note")
        self.edit("workflow/wait_operations.py", RECORDS_SLEEP, RECORDS_SLEEP + NOTES_SLEEP)
        return self

    def with_another_kind_of_sleep(self) -> NextRelease:
        """Record sleeps as steps of a kind that older releases do not know, and cannot do without."""
        self._declare("nap")
        self.edit("workflow/wait_operations.py", RECORDS_SLEEP, RECORDS_SLEEP.replace('"sleep"', '"nap"'))
        return self

    def _declare(self, kind: str) -> None:
        self.edit("model/workflow_records.py", '"undo", "token"\n]', f'"undo", "token", "{kind}"\n]')

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
            out, err = process.communicate(timeout=_SECONDS_MAX)
        assert process.returncode == 0, err
        return [json.loads(line) for line in out.splitlines()]

    def migrate(self, url: str) -> list[str]:
        """Bring the database up to this release; return what was applied."""
        (applied,) = self.run(url, "print(json.dumps(store.migrate()))")
        found: list[str] = applied
        return found
