"""Finds what the package exports, where it is defined, and which of it lacks a docstring. Reads, never imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def undocumented(package: Path) -> list[str]:
    """Modules without a docstring, and exported names, with their public methods, without one."""
    silent = [
        str(path.relative_to(package))
        for path in sorted(package.rglob("*.py"))
        if ast.get_docstring(ast.parse(path.read_text())) is None
    ]
    for node in ast.parse((package / "__init__.py").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                silent += exported_without_docstring(package, f"{node.module}.{alias.name}")
    return silent


def exported_without_docstring(package: Path, name: str) -> Iterator[str]:
    """The silent parts of one exported name; a module stands for all its public definitions."""
    if (module := module_file(package, name)) is not None:
        for definition in public_definitions(ast.parse(module.read_text()).body):
            yield from silent_parts(name, definition)
        return
    owner, _, last = name.rpartition(".")
    path = module_file(package, owner)
    if path is None:
        return
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, Definition) and node.name == last:
            yield from silent_parts(owner, node)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (alias.asname or alias.name) == last:
                    yield from exported_without_docstring(package, f"{node.module}.{alias.name}")


def module_file(package: Path, module: str) -> Path | None:
    first, *rest = module.split(".")
    if first != package.name:
        return None
    path = package.joinpath(*rest)
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def public_definitions(body: list[ast.stmt]) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            yield node


def silent_parts(owner: str, node: Definition) -> Iterator[str]:
    """The definition and, of a class, its public methods. An overload or a setter speaks through its first form."""
    if ast.get_docstring(node) is None and not speaks_elsewhere(node):
        yield f"{owner}.{node.name}"
    if isinstance(node, ast.ClassDef):
        for method in public_definitions(node.body):
            yield from silent_parts(f"{owner}.{node.name}", method)


def speaks_elsewhere(node: Definition) -> bool:
    marks = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    return bool(marks & {"overload", "override", "setter"})
