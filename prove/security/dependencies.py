"""What the package depends on: declared, pinned, under licences that fit, and nothing else imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from prove.figure import Tally
from prove.results import ROOT

__all__ = ["look_at_dependencies"]

_LICENCES = re.compile(
    r"\b(MIT|BSD|Apache|PSF|Python Software Foundation|ISC|MPL|LGPL|Lesser|Zlib|0BSD)\b", re.IGNORECASE
)
"""Licences under which a program of any licence may use a library. LGPL is that of psycopg, which is not linked in."""
_FOR_DEVELOPERS = ("dev", "release")
_FOR_OTHER_LIBRARIES = "src/detent/integrations/"
_OPTIONAL = {"pydantic", "pydantic_core", "pytest"}
"""They are imported only by programs that have them: for models of theirs, and as a plugin."""


def look_at_dependencies(tally: Tally) -> None:
    """Count what does not hold as wrong."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project.get("optional-dependencies", {})
    for_users = [
        *project["dependencies"],
        *(one for name, some in extras.items() if name not in _FOR_DEVELOPERS for one in some),
    ]
    pinned = _pinned((ROOT / "constraints.txt").read_text())
    used = _closure(for_users)
    for name in sorted(used | _closure(extras["dev"])):
        tally.injected["dependency looked at"] += 1
        if name not in pinned and name != canonicalize_name(project["name"]):
            _tell(tally, f"constraints.txt does not pin {name}")
    for name in sorted(used):
        if not _LICENCES.search(licence := _licence(name)):
            _tell(tally, f"the licence of {name} is not among those that are known to fit: {licence[:100]!r}")
    declared, tested = (
        {canonicalize_name(Requirement(one).name) for one in some} for some in (for_users, extras["dev"])
    )
    by_module = metadata.packages_distributions()
    for path, module in sorted(set(_imports(ROOT / "src" / "detent"))):
        tally.injected["import looked at"] += 1
        if module in _OPTIONAL:
            continue
        # A module for another library serves programs that have it. Detent needs it for its tests only.
        allowed = declared | tested if path.startswith(_FOR_OTHER_LIBRARIES) else declared
        if not {canonicalize_name(one) for one in by_module.get(module, [])} & allowed:
            _tell(tally, f"{path} imports {module}, which pyproject.toml does not declare")


def _pinned(text: str) -> set[str]:
    found = (re.fullmatch(r"([A-Za-z0-9._-]+)(\[[^\]]*\])?==\S+.*", line.strip()) for line in text.splitlines())
    return {canonicalize_name(one[1]) for one in found if one}


def _closure(wanted: list[str]) -> set[str]:
    """Return these requirements and what they need themselves, as far as it is installed here."""
    found: set[str] = set()
    queue = [(one, "") for one in wanted]
    while queue:
        text, extra = queue.pop()
        requirement = Requirement(text)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        if name not in found:
            found.add(name)
            queue += [(one, asked) for one in needs for asked in ("", *requirement.extras)]
    return found


def _licence(name: str) -> str:
    about = metadata.metadata(name)
    fields = [str(one)[:300] for field in ("License-Expression", "License") for one in about.get_all(field) or []]
    return " ".join([*fields, *(one for one in about.get_all("Classifier") or [] if one.startswith("License"))])


def _imports(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each file and the packages that it imports, which are neither the library of Python nor its own."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for name in names:
                top = name.partition(".")[0]
                if top != "detent" and top not in sys.stdlib_module_names:
                    yield str(file.relative_to(ROOT)), top


def _tell(tally: Tally, text: str) -> None:
    tally.wrong += 1
    tally.stories.append(text)
