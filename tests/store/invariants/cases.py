"""Every planted corruption: importing a module adds its cases."""

from __future__ import annotations

from tests.store.invariants import (
    corruption_of_definitions,
    corruption_of_records,
    corruption_of_runs,
    corruption_of_services,
    corruption_of_workflows,
)
from tests.store.invariants.corruption import CASES, Corruption, pairs

__all__ = ["CASES", "Corruption", "pairs"]

assert corruption_of_definitions
assert corruption_of_records
assert corruption_of_runs
assert corruption_of_services
assert corruption_of_workflows
