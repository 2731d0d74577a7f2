"""Documents into a table, once each. Run it with `detent worker ingest:app`; DETENT_DATABASE_URL says where."""

from __future__ import annotations

import json
from pathlib import Path

from detent import Context, Detent, Fatal, Retry

app = Detent()

TABLE = "CREATE TABLE IF NOT EXISTS document (name TEXT NOT NULL, words INTEGER NOT NULL)"


@app.task(name="prepare", queue="documents")
def prepare(ctx: Context) -> None:
    """The table, where it is not there yet. It has no unique index on purpose: two lines of one name would show."""
    with ctx.commit() as tx:
        tx.execute(TABLE)


@app.task(name="ingest", queue="documents", retry=Retry(3, base=0.1, cap=0.2), timeout=30)
def ingest(ctx: Context, path: str) -> int:
    """How many words it has. What is no document will be none the next time either: that is fatal."""
    document = Path(path)
    if document.name.startswith("far") and ctx.attempt < 3:
        raise ConnectionError(f"{document.name}: its source does not answer")
    try:
        text = json.loads(document.read_text())["text"]
        words = len(text.split())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Fatal(f"{document.name} is no document: {error}") from error
    ctx.event("read", words=words)
    with ctx.commit() as tx:
        tx.execute("INSERT INTO document (name, words) VALUES (:name, :words)", {"name": document.name, "words": words})
    return words
