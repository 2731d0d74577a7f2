"""The example `notebook`, executed by a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.deadlines import scaled

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook"
SECONDS_MAX = scaled(100)


@pytest.mark.timeout(SECONDS_MAX + 60)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_whole_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """U1: handles are shown as HTML, and plain and awaited calls both work on the loop of the kernel."""
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    notebook = nbformat.read(NOTEBOOK / "shop.ipynb", as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in notebook.cells)
    client: Any = NotebookClient(notebook, timeout=int(SECONDS_MAX), resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    told = ["".join(_told(output) for output in cell.outputs) for cell in notebook.cells if cell.cell_type == "code"]
    _, _, jobs, sale, steps, why, result, previewed, changes, applied, _ = told
    assert jobs.count("<tr>") == 5
    assert "a customer without a &lt;name&gt;" in jobs
    assert "hello" not in jobs  # no results
    assert "<strong>Job 4</strong>" in sale
    assert ">load</td>" in steps
    assert ">100</td>" in steps
    assert "for signal &#x27;agreed&#x27;" in why or "for signal 'agreed'" in why
    assert result == "'ring for 100, agreed by the boss'"
    assert '<progress value="3" max="3"></progress> 3 of 3' in previewed
    assert "{&quot;price&quot;:275}" in changes
    assert "3 applied" in applied


def _told(output: Any) -> str:
    data = output.get("data", {})
    return str(data.get("text/html") or data.get("text/plain") or output.get("text", ""))
