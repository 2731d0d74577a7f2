"""Every block of code in the README and the docs is run or parsed, or this page says why not."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from detent.testing.stores import plain_connection
from tests.docs.test_blocks import ROOT

CHECKED = {
    "python": "run, or a part of an example that is run: test_blocks.py",
    "sh": "read by bash: below; its commands and options exist: test_mentions.py",
    "sql": "run by the tests in SQL, by page",
    **dict.fromkeys(("yaml", "ini", "json", "toml"), "parsed: test_deployment.py"),
    "mermaid": "drawn: test_site.py, and tests/lifecycle/test_diagrams.py",
}
NOT_RUN = {
    "": "output, signatures, and lines of files that belong to other programs",
    "text": "output, and drawings",
    "js": "for a browser; tests/http/test_stream.py reads the same messages",
}
SQL = {
    "docs/ops.md": "below",
    "docs/sql-functions.md": "signatures, generated from the functions: test_pages.py",
    "docs/sql.md": "tests/examples/test_sql_worker.py",
    "docs/upgrade.md": "below",
    "docs/workflows.md": "tests/store/postgres/test_signals_from_sql.py",
}
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n`]*\n(?P<code>.*?)^ *```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: str
    indent: str
    language: str
    code: str


def blocks() -> Iterator[Block]:
    for page in PAGES:
        for found in FENCE.finditer(page.read_text(encoding="utf-8")):
            yield Block(page.relative_to(ROOT).as_posix(), found["indent"], found["language"], found["code"])


BLOCKS = list(blocks())


def sql_of(page: str) -> str:
    (code,) = (one.code for one in BLOCKS if (one.page, one.language) == (page, "sql"))
    return code


def test_every_language_is_checked_or_says_why_not() -> None:
    assert {one.language for one in BLOCKS} == set(CHECKED) | set(NOT_RUN)


def test_every_page_with_sql_says_what_runs_it() -> None:
    assert {one.page for one in BLOCKS if one.language == "sql"} == set(SQL)
    assert all((ROOT / test).is_file() for test in SQL.values() if test.startswith("tests/"))


def test_no_block_hides_from_its_test() -> None:
    """The tests look for blocks at the beginning of a line."""
    hidden = [one for one in BLOCKS if one.indent and one.language in set(CHECKED) - {"sh"}]
    assert hidden == []


def test_bash_reads_every_block_for_the_shell() -> None:
    read = 0
    for one in BLOCKS:
        if one.language == "sh":
            done = subprocess.run(["bash", "-n"], input=one.code, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), f"{one.page}: {done.stderr}"
            read += 1
    assert read > 50


def test_the_sql_of_the_page_about_upgrades_runs(postgres_ready_url: str) -> None:
    with closing(plain_connection(postgres_ready_url)) as connection:
        connection.execute(sql_of("docs/upgrade.md"))


def test_the_sql_of_the_page_about_ops_runs(postgres_ready_url: str) -> None:
    """One statement after the other; the run and the token of the page are replaced by those that were given out."""
    lines = [line.partition("--")[0].strip() for line in sql_of("docs/ops.md").splitlines()]
    statements = [line for line in lines if line]
    run, token, seen = "run-17", "1.42", dict[str, Any]()
    with closing(plain_connection(postgres_ready_url)) as connection:
        connection.autocommit = True
        for statement in statements:
            if "cancel_run" in statement:  # the run of the page has ended
                (run, *_) = connection.execute("SELECT * FROM ops.queue_run('shop', 'staging', 'a', 'main')").fetchone()
            cursor = connection.execute(statement.replace("run-17", run).replace("1.42", token))
            row = cursor.fetchone() if cursor.description else None
            seen[re.split(r"[(;]", statement)[0]] = row
            if "claim_next_run" in statement:
                assert row is not None
                run, token = row[0], row[-1]
    assert seen["SELECT * FROM ops.queue_run"][1] == "queued"
    assert seen["SELECT ops.finish_run"] == ("success",)
    assert seen["SELECT ops.cancel_run"] is not None
