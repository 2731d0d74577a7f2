"""Commands, options, verbs and files that the README and the docs mention exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import detent
from detent.cli.command import COMMON
from detent.cli.main import root
from tests.docs.pages import PAGES, ROOT
from tests.docs.python_page import members, nouns

GENERATED = {ROOT / name for name in PAGES if name != "docs/alerts.md"} | {ROOT / "docs/cli.md"}
WRITTEN = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))) if page not in GENERATED]
pages = pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.relative_to(ROOT).as_posix())

BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.MULTILINE)
SPAN = re.compile(r"`(detent [^`]+)`")
LINE = re.compile(r"^(?:\w+=\$\()?(detent [a-z].*?)\)?(?:  +#.*)?$", re.MULTILINE)
WORD = re.compile(r"[a-z][a-z-]*")
VERB = re.compile(r"\bapp((?:\.[a-z_]+)+)")
FILE = re.compile(r"`((?!build/)(?:[\w.-]+/)*\w+\.(?:py|sql|md)|(?:src|tests|examples|benchmarks)/[\w./-]+)`")
FOLDERS = ("", "docs", "examples/first", "examples/django_shop", "src/detent", "src/detent/store", "tests/faults")
"""The folders that a path may be relative to."""


@pages
def test_every_command_that_is_mentioned_exists(page: Path) -> None:
    for mention in _commands(page.read_text(encoding="utf-8")):
        assert _is_known(mention), mention


def _commands(text: str) -> Iterator[str]:
    """Yield command lines: from inline code, and from the lines of code blocks."""
    blocks = "\n".join(code for language, code in BLOCK.findall(text) if language in ("", "sh"))
    prose = BLOCK.sub("", text)
    for found in [*SPAN.findall(" ".join(prose.split())), *LINE.findall(blocks)]:
        yield from (part for part in re.split(r"  +|; ", found) if part.startswith("detent "))


def _is_known(mention: str) -> bool:
    command: click.Command = root
    words = mention.split()[1:]
    while words and isinstance(command, click.Group) and WORD.fullmatch(words[0]):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            return False
        command, words = found, words[1:]
    options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
    options |= {f"--{name}" for name in COMMON} | {"--help"}
    return all(word.strip("[]") in options for word in words if word.strip("[]").startswith("--"))


@pages
def test_every_noun_and_verb_that_is_mentioned_exists(page: Path) -> None:
    known = {path.removeprefix("app"): set(members(noun)) for path, noun in nouns().items()}
    of_application = set(members(detent.Detent)) | {"settings"}
    for mention in VERB.findall(page.read_text(encoding="utf-8").replace("app.aio", "app")):
        path, _, verb = mention.rpartition(".")
        names = of_application if path == "" else known.get(path)
        assert names is None or verb in names, f"app{mention}"
        assert path.split(".")[1] in of_application if path else True, f"app{mention}"


@pages
def test_every_file_that_is_mentioned_exists(page: Path) -> None:
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for mention in FILE.findall(prose):
        assert any((ROOT / folder / mention).exists() for folder in FOLDERS), mention


@pages
def test_every_request_goes_to_the_server_as_it_starts_and_its_body_is_json(page: Path) -> None:
    """`curl -d` sends a form, which the API refuses."""
    blocks = "\n".join(code for language, code in BLOCK.findall(page.read_text(encoding="utf-8")) if language == "sh")
    for request in re.findall(r"^curl .*$", blocks, re.MULTILINE):
        assert "localhost:8321/" in request, request
        assert not re.search(r" (-d|--data\S*|-X) ", request), request
