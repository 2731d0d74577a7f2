"""Build the documentation as a site with search: `make docs`, or `python -m docs.build_site`.

The site mirrors the repository: its pages and the files that they link to stand at the same paths, so every link of a
page works on the site as it does in the repository.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from detent.lifecycle.diagrams import mermaid, svg
from detent.lifecycle.library import LIBRARY
from docs.sequence_drawing import sequence_svg

__all__ = ["ROOT", "build_site"]

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build"
MIRRORED = ("README.md", "HOUSE.md", "CHANGELOG.md", "LICENSE", "docs", "examples", "console/README.md")
BUILDERS = ("build_site.py", "sequence_drawing.py", "zensical.toml")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.db", "*.db-*", *BUILDERS)
SEQUENCE = re.compile(r"^```mermaid\n(sequenceDiagram\n.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```python (?:run|test)$", re.MULTILINE)
"""Tests run these blocks; the second word of the fence is for them."""
BLOCK = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
INDENT = re.compile(r"^ {2,3}(?=\S)", re.MULTILINE)
"""What belongs to an item of a list. The site wants four spaces, GitHub takes two or three."""


def build_site(into: Path = BUILD) -> Path:
    """Write the pages to `into/pages` and build `into/site` out of them. Return that folder."""
    pages, site = into / "pages", into / "site"
    for folder in (pages, site):
        shutil.rmtree(folder, ignore_errors=True)
    for name in MIRRORED:
        source, target = ROOT / name, pages / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=LEFT_OUT)
        else:
            shutil.copy(source, target)
    for page in pages.rglob("*.md"):
        text = FENCE.sub("```python", page.read_text(encoding="utf-8"))
        parts = BLOCK.split(text)
        parts[::2] = [INDENT.sub("    ", prose) for prose in parts[::2]]
        page.write_text("".join(parts), encoding="utf-8")
    _draw_lifecycles(pages / "docs")
    _draw_sequences(pages / "docs")
    shutil.copy(ROOT / "docs" / "zensical.toml", into)
    zensical = Path(sys.executable).with_name("zensical")
    subprocess.run([zensical, "build", "--strict", "--clean"], cwd=into, check=True)
    return site


def _draw_lifecycles(docs: Path) -> None:
    """Replace the diagrams by pictures: to draw them in a browser, a script of another host would be needed."""
    page = docs / "lifecycles.md"
    text = page.read_text(encoding="utf-8")
    for one in LIBRARY.values():
        name = f"images/lifecycle-{one.name}.svg"
        (docs / name).write_text(svg(one), encoding="utf-8")
        text = text.replace(f"```mermaid\n{mermaid(one)}```", f"![The lifecycle {one.name}]({name})")
    page.write_text(text, encoding="utf-8")


def _draw_sequences(docs: Path) -> None:
    """Replace sequence diagrams by pictures, for the same reason."""
    for page in docs.glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for number, found in enumerate(SEQUENCE.findall(text), start=1):
            name = f"images/{page.stem}-{number}.svg"
            (docs / name).write_text(sequence_svg(found), encoding="utf-8")
            text = text.replace(f"```mermaid\n{found}```", f"![The order of events]({name})")
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    build_site(*map(Path, sys.argv[1:]))
