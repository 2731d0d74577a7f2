"""`detent dead`: list dead jobs, and summarise why they died."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from detent.cli import output
from detent.cli.command import Group, with_app
from detent.cli.job_output import attempts_of, job_object
from detent.cli.options import job_filters, limit_option, page_options
from detent.cli.session import Session, redaction_of
from detent.errors import essence

if TYPE_CHECKING:
    from detent.app.detent import Detent

__all__ = ["dead"]

dead = Group(
    "dead",
    help="""List dead jobs: jobs that failed for good and are quarantined.

    `detent jobs retry`, `discard` and `replace` act on them; `--state quarantined` selects all of them.
    """,
    examples=("detent dead report", "detent dead list --task shop.welcome"),
)


@dead.command("list")
@job_filters("task", "queue", "tenant")
@page_options
@with_app
def list_(session: Session, app: Detent, **chosen: Any) -> None:
    """List dead jobs with their errors, the newest first. `detent jobs get` shows a whole error."""
    rows = app.dead.list(**chosen).each(lambda job: redaction_of(app).job(job.row))
    tenant = ["tenant"] if any(row.tenant for row in rows) else []
    error = ("ERROR", lambda row: essence(row.error))
    columns = output.columns("id", "task", "queue", *tenant, ("ATTEMPTS", attempts_of), ("DIED", "finished_at"), error)
    session.show_rows(rows, columns, empty=f"no dead jobs in {app.store.name}", objects=map(job_object, rows))


@dead.command()
@job_filters("task", "queue", "tenant")
@limit_option()
@with_app
def report(session: Session, app: Detent, limit: int, **chosen: Any) -> None:
    """Summarise why jobs died.

    One line for each task, queue, reason and kind of error, the largest first, each with one job as an example.
    """
    groups = redaction_of(app).listed(app.dead.report(limit=limit, **chosen))
    group = ("jobs", "task", "queue", "reason", ("ERROR", "kind"))
    columns = output.columns(*group, "attempts", "oldest_at", "newest_at", ("EXAMPLE", "sample_id"))
    session.show_rows(groups, columns, empty=f"no dead jobs in {app.store.name}")
    if len(groups) == limit:
        output.print_note("There may be more: --limit")
