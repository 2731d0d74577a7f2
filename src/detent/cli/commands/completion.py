"""`detent completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click

from detent.cli import render
from detent.cli.command import Command
from detent.cli.session import Session

__all__ = ["command"]


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_obj
def command(session: Session, shell: str) -> None:
    """Print the completion script of a shell.

    In its start-up file: `eval "$(detent completion bash)"`.
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = click.get_current_context().find_root().command
    script = found(root, {}, "detent", "_DETENT_COMPLETE").source()
    if session.json:
        render.json_value({"shell": shell, "script": script})
    else:
        render.out(script.rstrip("\n"))
