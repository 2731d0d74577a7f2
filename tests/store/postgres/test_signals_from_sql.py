"""The statement of docs/workflows.md sends a signal, from psql."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from detent.store.contract import Store
from detent.store.open import open_store
from tests.contract.workflows.sample_workflows import begin, park, signal
from tests.deadlines import scaled

PAGE = Path(__file__).parents[3] / "docs" / "workflows.md"


@pytest.fixture
def store(postgres_store_url: str) -> Store:
    return open_store(postgres_store_url)


def test_the_statement_of_the_page(store: Store, postgres_store_url: str) -> None:
    """It is sent, found again, and wakes the workflow."""
    held = begin(store)
    park(store, held, signal("decision"))
    found = re.search(r"```sql\n(SELECT answer.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    statement = found[1].replace("ARRAY[17]", f"ARRAY[{held.job_id}]")
    for answer in ("sent", "found"):
        command = ["psql", postgres_store_url, "-XAtc", statement]
        done = subprocess.run(command, capture_output=True, text=True, timeout=scaled(30), check=True)
        assert done.stdout.split("|")[0] == answer
    (kept,) = store.signal_list(held.job_id)
    assert (kept.name, kept.payload, kept.actor, kept.reason) == ("decision", "true", "ana", "she said so")
    assert store.wait_list(job_id=held.job_id).rows == []
