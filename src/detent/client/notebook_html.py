"""How handles and lists are shown in a notebook: tables and progress bars as HTML.

Everything is escaped. There are no colours, so that it fits a light and a dark theme. Arguments and results of jobs are
left out: a notebook is a file that is passed on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from html import escape
from itertools import islice
from typing import Any

import msgspec

from detent.client.handle import Handle
from detent.client.job import JobSnapshot
from detent.errors.base import essence
from detent.model.batch_records import BatchRunRow
from detent.model.pipeline_records import PipelineRunRow
from detent.model.records import JobRow
from detent.model.workflow_records import StepRow

__all__ = ["shown", "table"]

Facts = Mapping[str, Any]

_ROWS_MAX = 100
_CHARACTERS_MAX = 200
_CELL = "text-align: left; vertical-align: top; border-bottom: 1px solid rgba(128, 128, 128, 0.3)"


class _Markup(str):
    """HTML that is escaped already."""

    __slots__ = ()


def table(items: Iterable[Any], *, more: bool = False) -> str:
    """Return a table with a row for each item, at most 100. Columns that are empty in every row are left out. With
    `more`, the list has further pages."""
    rest = iter(items)
    rows = [_facts_of(item) for item in islice(rest, _ROWS_MAX)]
    left_out = sum(1 for _ in rest)
    names = dict.fromkeys(name for row in rows for name, value in row.items() if value not in (None, ""))
    if not names:
        return "<p>nothing</p>"
    head = "".join(f'<th style="{_CELL}">{_heading(name)}</th>' for name in names)
    body = "".join(f"<tr>{''.join(_cell(row.get(name)) for name in names)}</tr>" for row in rows)
    notes = f"<p>and {left_out:,} more</p>" if left_out else ""
    notes += "<p>The list has further pages: pass its <code>next</code> as <code>after</code>.</p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}"


def shown(title: str, item: Any) -> str:
    """Return the facts of one handle or row, one below the other."""
    facts = [(name, value) for name, value in _facts_of(item).items() if value not in (None, "")]
    rows = "".join(f'<tr><th style="{_CELL}">{_heading(name)}</th>{_cell(value)}</tr>' for name, value in facts)
    return f"<p><strong>{escape(title)}</strong></p><table><tbody>{rows}</tbody></table>"


def _facts_of(item: Any) -> Facts:
    if isinstance(item, JobSnapshot):
        return {"id": item.id, "state": "not read yet: refresh()"} if item._row is None else _of_job(item._row)
    row = item.row if isinstance(item, Handle) else item
    match row:
        case BatchRunRow():
            return _of_batch_run(row)
        case PipelineRunRow():
            return _of_pipeline_run(row)
        case StepRow(path=path, kind=kind, attempt=attempt, value=value, error=error, done_at=done_at):
            return {"step": path, "kind": kind, "attempt": attempt, "value": value, "error": error, "done_at": done_at}
    if {"ref", "before", "after"} <= set(getattr(row, "__struct_fields__", ())):
        return _of_change(row)
    return msgspec.structs.asdict(row) if isinstance(row, msgspec.Struct) else {"value": row}


def _of_job(row: JobRow) -> Facts:
    facts = {name: getattr(row, name) for name in ("id", "task", "state", "queue", "tenant", "attempt", "due_at")}
    return facts | {"finished_at": row.finished_at, "error": essence(row.error) if row.error else None}


def _of_batch_run(row: BatchRunRow) -> Facts:
    done = {"preview": row.previewed, "rolled_back": row.rolled_back}.get(row.state, row.applied)
    counts = {name: getattr(row, name) for name in ("queued", "applying", "applied", "failed", "rolled_back")}
    return {
        "id": row.id,
        "batch": row.batch,
        "state": row.state,
        "previewed" if row.state == "preview" else "progress": _progress(done, row.total),
        "targets": ", ".join(f"{count:,} {_heading(name)}" for name, count in counts.items() if count),
        "unchanged": row.unchanged or None,
        "conflicts": row.conflicts or None,
        "error": row.critical or row.error,
    }


def _of_pipeline_run(row: PipelineRunRow) -> Facts:
    return {
        "id": row.id,
        "pipeline": row.name,
        "state": row.state,
        "partitions": _progress(row.parts_ended, row.partitions),
        "failed": row.parts_failed or None,
        "records": row.records,
        "consolidated": row.consolidated,
        "since": row.since,
        "error": row.error,
    }


def _of_change(row: Any) -> Facts:
    """Return a change of a batch run. Of two objects, the fields that differ."""
    before, after = row.before, row.after
    if isinstance(before, dict) and isinstance(after, dict):
        names = [name for name in before | after if before.get(name) != after.get(name)]
        before, after = ({name: one[name] for name in names if name in one} for one in (before, after))
    facts = {"ref": row.ref, "state": row.state, "before": before, "after": after, "error": row.error}
    return facts | {"found": row.found if row.conflict else None}


def _progress(done: int, total: int) -> _Markup:
    return _Markup(f'<progress value="{done}" max="{max(total, 1)}"></progress> {done:,} of {total:,}')


def _heading(name: str) -> str:
    return escape(name.replace("_", " "))


def _cell(value: Any) -> str:
    return f'<td style="{_CELL}">{value if isinstance(value, _Markup) else escape(_text(value))}</td>'


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    text = str(value)
    if isinstance(value, dict | list):
        text = msgspec.json.encode(value, enc_hook=str).decode()
    return text if len(text) <= _CHARACTERS_MAX else f"{text[:_CHARACTERS_MAX]}…"
