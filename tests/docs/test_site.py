"""The site that `make docs` builds is whole: no dead link, every page in its menu, and no request to another host."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from docs.build_site import ROOT
from docs.sequence_drawing import sequence_svg

SOURCES = {"script": "src", "img": "src", "iframe": "src", "source": "src", "use": "href"}
"""Attributes whose address a browser loads by itself. Those of `link` depend on its `rel`."""
LINKS_LOADED = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch", "manifest"}


class _Page(HTMLParser):
    """What a page of the site links to, what it loads, and which anchors it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        if tag == "link" and set(values.get("rel", "").split()) & LINKS_LOADED:
            self.loads.add(values["href"])
        if SOURCES.get(tag, "") in values:
            self.loads.add(values[SOURCES[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by the command of `make docs`."""
    into = tmp_path_factory.mktemp("build")
    assert "$(BIN)/python -m docs.build_site\n" in (ROOT / "Makefile").read_text(encoding="utf-8")
    subprocess.run([sys.executable, "-m", "docs.build_site", str(into)], cwd=ROOT, check=True)
    return into / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, _Page]:
    return {page: _Page(page.read_text(encoding="utf-8")) for page in site.rglob("*.html") if page.name != "404.html"}


def dead_links(pages: dict[Path, _Page]) -> Iterator[str]:
    for page, found in pages.items():
        for link in found.links | found.loads:
            if urlsplit(link).scheme:
                continue
            path, anchor = urldefrag(link)
            target = (page.parent / unquote(path)).resolve() if path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (anchor and target in pages and unquote(anchor) not in pages[target].anchors):
                yield f"{page.name}: {link}"


def test_no_link_is_dead(pages: dict[Path, _Page]) -> None:
    assert len(pages) > 20
    assert sorted(dead_links(pages)) == []


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[Path, _Page]) -> None:
    loaded = {address for page in pages.values() for address in page.loads}
    assert {address for address in loaded if urlsplit(address).netloc} == set()
    styles = "".join(style.read_text(encoding="utf-8") for style in site.rglob("*.css"))
    assert re.findall(r"(?:url\(|@import\s+)[\"']?(?:https?:)?//[^)\"']+", styles) == []


def test_lifecycles_are_pictures(site: Path) -> None:
    """A browser would draw them only with a script of another host."""
    page = (site / "docs" / "lifecycles.html").read_text(encoding="utf-8")
    assert "images/lifecycle-job.svg" in page
    assert "stateDiagram" not in page


def test_a_sequence_of_events_is_a_picture(site: Path) -> None:
    page = (site / "docs" / "concepts.html").read_text(encoding="utf-8")
    assert "images/concepts-1.svg" in page
    assert "sequenceDiagram" not in page
    picture = (site / "docs" / "images" / "concepts-1.svg").read_text(encoding="utf-8")
    assert "COMMIT" in picture
    with pytest.raises(ValueError, match="'loop Every minute' is neither a message nor a note"):
        sequence_svg("sequenceDiagram\nparticipant A as One\nloop Every minute")


def test_every_page_is_in_the_menu_once() -> None:
    menu = tomllib.loads((ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    listed = sorted(_listed(menu))
    written = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert [one for one in listed if one.startswith("docs/")] == sorted(written)


def _listed(menu: list[Any]) -> Iterator[str]:
    for entry in menu:
        for value in entry.values():
            yield from _listed(value) if isinstance(value, list) else [value]


def test_a_dead_link_would_be_found(tmp_path: Path) -> None:
    page, other = tmp_path / "a.html", tmp_path / "b.html"
    text = '<a href="b.html#there">1</a><a href="b.html#gone">2</a><a href="c.html">3</a><img src="d.png">'
    page.write_text(text, encoding="utf-8")
    other.write_text('<h1 id="there">B</h1>', encoding="utf-8")
    found = {one: _Page(one.read_text(encoding="utf-8")) for one in (page, other)}
    assert sorted(dead_links(found)) == ["a.html: b.html#gone", "a.html: c.html", "a.html: d.png"]


def test_the_search_knows_the_pages(site: Path) -> None:
    index = (site / "search.json").read_text(encoding="utf-8")
    assert "commit block" in index
    assert "docs/guide.html" in index
