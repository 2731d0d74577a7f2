"""The shop of tests/app, on each database in turn."""

from __future__ import annotations

from tests.app.conftest import shop

__all__ = ["shop"]
