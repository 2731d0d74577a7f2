"""`detent server`: serve the HTTP API."""

from __future__ import annotations

import click

from detent.cli import output
from detent.cli.command import Command
from detent.cli.failures import USAGE, CommandFailed
from detent.cli.session import Session

__all__ = ["server"]


@click.command("server", cls=Command)
@click.argument("app", metavar="[MODULE:APP]", required=False)
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="Address of this machine.")
@click.option("--port", type=int, metavar="N", default=8321, show_default=True, help="Port; 0 takes any free one.")
@click.option(
    "--allow-host", metavar="NAME", multiple=True, help="Another name that the server is reached by (repeatable)."
)
@click.pass_obj
def server(session: Session, app: str | None, host: str, port: int, allow_host: tuple[str, ...]) -> None:
    """Serve the HTTP API.

    Without an application the server can show and change what is on record; with one it can also enqueue jobs and start
    runs. It listens on this machine only. SIGTERM or Ctrl-C stops it.
    """
    try:
        from detent.http.server import Server
    except ModuleNotFoundError as error:
        missing = f"the HTTP API needs {error.name}, which is not installed. Run `pip install 'detent[server]'`"
        raise CommandFailed(missing, USAGE) from None
    session.app = app or session.app
    with session.open() as found:
        api = Server(found, host=host, port=port, hosts=allow_host)
        api.run(ready=lambda url: _tell(session, url))


def _tell(session: Session, url: str) -> None:
    if session.json:
        output.print_json_line({"url": url})
    else:
        output.print_text(f"Serving the HTTP API on {url}/api/v1")
        output.flush()
