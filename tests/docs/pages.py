"""The generated pages: `python -m tests.docs.pages` writes them, and a test checks that they are current."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from detent import errors
from detent.declare.settings import Settings
from tests.docs.alerts_page import alerts_page
from tests.docs.cli_page import cli_page
from tests.docs.error_advice import ADVICE
from tests.docs.http_page import http_page
from tests.docs.metrics_page import metrics_page
from tests.docs.python_page import python_page
from tests.docs.sql_page import sql_page

ROOT = Path(__file__).parents[2]

_ERRORS_HEAD = """\
# Errors

Every error that Detent raises is a `detent.errors.DetentError`. Its fields are attributes. The message is made from
them and says what was refused, what was found and what to do. Outside Python an error has a code: its SQLSTATE in
PostgreSQL, its HTTP status, and the exit code of the command line.

This page is generated from `detent.errors` by `python -m tests.docs.pages`.
"""

_SETTINGS_HEAD = """\
# Settings

The value of a setting comes from the first of these that has it:

1. an argument: `Detent("sqlite:///shop.db", payload_max=100_000)`
2. the environment: `DETENT_PAYLOAD_MAX=100000`
3. the file `detent.toml`, or the table `[tool.detent]` of `pyproject.toml`, in the working directory
4. the default

An unknown name, and a value out of range, are refused with `InvalidSetting`. In the environment, an unknown name is
refused only if it resembles that of a setting, because other programs may use the prefix too.

This page is generated from `declare/settings.py` by `python -m tests.docs.pages`.

| setting | default | allowed | meaning |
|---|---|---|---|
"""


ENVIRONMENT = {
    "DETENT_APP": "Application that commands import, as `MODULE:APP`. `--app` takes precedence.",
    "DETENT_DEBUG": "`1` adds the traceback to errors of commands and of workers whose application cannot be imported.",
    "DETENT_JOB_ID": "Set for the command of a `shell` task: the id of its job.",
    "DETENT_ATTEMPT": "Set for the command of a `shell` task: the number of the attempt.",
    "DETENT_EFFECT_KEY": "Set for the command of a `shell` task: the effect key of its job.",
    "DETENT_TEST_DATABASE_URL": "PostgreSQL server for `pytest --detent-database postgresql` and for the tests of this "
    "repository. Default: they start one.",
    "NOTIFY_SOCKET": "Set by systemd: a worker reports there that it is ready, alive and stopping.",
    "NO_COLOR": "If it is set, commands print no colours.",
}
"""Environment variables that are no settings."""

_ENVIRONMENT_HEAD = """
## Other environment variables

| variable | meaning |
|---|---|
"""


def errors_page() -> str:
    """Return the tree, then each class with its fields and codes."""
    tree = (errors.__doc__ or "").split("\n\n")[1]
    parts = [_ERRORS_HEAD, "```", *(line.removeprefix("    ") for line in tree.splitlines()), "```", ""]
    parts += ["| error | fields | SQLSTATE | HTTP | exit | meaning | what to do |", "|---|---|---|---|---|---|---|"]
    for kind, codes in errors.TABLE.items():
        names = ", ".join(f"`{one.name}`" for one in fields(kind)) if is_dataclass(kind) else ""
        meaning = " ".join((kind.__doc__ or "").split())
        cells = (
            f"`{kind.__name__}`",
            names,
            codes.sqlstate,
            codes.http,
            codes.exit,
            meaning,
            ADVICE.get(kind.__name__, ""),
        )
        parts.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(parts) + "\n"


def settings_page() -> str:
    """Return a line for each setting."""
    page = _SETTINGS_HEAD
    for one in fields(Settings):
        page += f"| `{one.name}` | {_default(one.default)} | {_range(one.metadata)} | {one.metadata['means']} |\n"
    lines = (f"| `{name}` | {meaning} |\n" for name, meaning in ENVIRONMENT.items())
    return f"{page}{_ENVIRONMENT_HEAD}{''.join(lines)}"


def _default(value: object) -> str:
    if isinstance(value, int | float):
        return f"{value:,}"
    return f"`{value}`" if value else ""


def _range(metadata: Any) -> str:
    if "least" in metadata:
        return f"{metadata['least']:,} to {metadata['most']:,}"
    return ", ".join(metadata["one_of"]) if metadata.get("one_of") else "text"


PAGES = {
    "docs/errors.md": errors_page,
    "docs/settings.md": settings_page,
    "docs/alerts.md": alerts_page,
    "docs/metrics.md": metrics_page,
    "docs/python.md": python_page,
    "docs/cli.md": cli_page,
    "docs/http.md": http_page,
    "docs/sql-functions.md": sql_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / name).write_text(page(), encoding="utf-8")
