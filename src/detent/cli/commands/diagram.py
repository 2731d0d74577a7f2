"""`detent diagram`: a lifecycle drawn."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.command import Command
from detent.cli.session import Session

__all__ = ["command"]


@click.command("diagram", cls=Command)
@click.argument("name", metavar="NAME")
@click.option("--svg", is_flag=True, help="As a picture; without it, as Mermaid text.")
@click.pass_obj
def command(session: Session, name: str, svg: bool) -> None:
    """Draw a lifecycle.

    One of Detent's own (job, execution, batch_run, …), or with --app one that the application attached.
    """
    with session.open_or_new() as app:
        text = app.lifecycles.diagram(name, format="svg" if svg else "mermaid")
    if session.json:
        render.json_value({"name": name, "format": "svg" if svg else "mermaid", "text": text})
    else:
        render.out(text.rstrip("\n"))
