"""`detent server`: serve the HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from detent.cli import output
from detent.cli.command import Command
from detent.cli.failures import USAGE, CommandFailed
from detent.cli.options import flag, option
from detent.cli.session import Session

if TYPE_CHECKING:
    from detent.worker.output import LogFormat

__all__ = ["server"]


@click.command(cls=Command)
@click.argument("application", metavar="[MODULE:APP]", required=False)
@option("--host", "Address of this machine to listen on.", "ADDRESS", default="127.0.0.1")
@option("--port", "Port to listen on; 0 takes any free one.", int, default=8321)
@option("--allow-host", "Another name that the server is reached by (repeatable).", "NAME", multiple=True)
@flag("--require-token", "Refuse requests without a token on a loopback address too.")
@option("--log-format", "Format of the log on stderr.", ["text", "json"], default="text")
@click.pass_obj
def server(
    session: Session,
    application: str | None,
    host: str,
    port: int,
    allow_host: tuple[str, ...],
    require_token: bool,
    log_format: LogFormat,
) -> None:
    """Serve the HTTP API and the console.

    Without an application the server can show and change what is on record; with one it can also enqueue jobs and start
    runs. SIGTERM or Ctrl-C stops it.

    On a loopback address, which is the default, requests without a token may do everything. On any other address every
    request needs a token; create one first with `detent tokens create`.
    """
    try:
        from detent.http.server import Server
    except ModuleNotFoundError as error:
        missing = f"the HTTP API needs {error.name}, which is not installed. Run `pip install 'detent[server]'`"
        raise CommandFailed(missing, USAGE) from None
    from detent.worker.output import set_up_output

    set_up_output(log_format, prints=False)
    session.app = application or session.app
    with session.open() as app:
        serving = Server(app, host=host, port=port, hosts=allow_host, require_token=require_token, actor=session.actor)
        serving.run(ready=lambda url: _print_url(session, url))


def _print_url(session: Session, url: str) -> None:
    if session.json:
        output.print_json_line({"url": url})
    else:
        output.print_text(f"Serving the HTTP API on {url}/api/v1\nConsole: {url}/")
        output.flush()
