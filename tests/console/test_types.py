"""The console fits the HTTP API: its requests and what it reads from answers are checked by types that are generated
from the description of the API."""

from __future__ import annotations

from tests.console.types_check import check_types


def test_the_console_fits_the_description_of_the_api() -> None:
    assert check_types() == ""
