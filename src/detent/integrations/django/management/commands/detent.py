"""`manage.py detent …`: the command line of Detent, on the database and with the tasks of the project."""

from __future__ import annotations

import sys
from argparse import REMAINDER
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandParser

from detent.cli.main import main

__all__ = ["Command"]

_APP = "detent.integrations.django.project:app"


class Command(BaseCommand):
    """Passes its arguments on to `detent --app …`."""

    help = "Run a command of Detent, for instance `manage.py detent worker` or `manage.py detent jobs list`."
    requires_system_checks: ClassVar[Any] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Take everything."""
        parser.add_argument("arguments", nargs=REMAINDER, help="a command of Detent and its options; none lists them")

    def handle(self, *_: Any, arguments: list[str], **__: Any) -> None:
        """Run the command. Its exit code is that of `manage.py`."""
        code = main(["--app", _APP, *arguments] if arguments else ["--help"])
        if code:
            sys.exit(code)
