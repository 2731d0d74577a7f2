"""Writes the async twin of every noun and handle from its sync source: `python -m tests.surface.twins`.

A public method becomes a coroutine with the same arguments that calls its sync twin on a thread. Three kinds of methods
are written otherwise:

- `wait` polls: the sync class has `_wait_steps`, which yields the pauses; the coroutine sleeps them on the loop.
- A method that returns an `Iterator` becomes an async generator over the pages of `_NAME_pages`.
- A method in `PLAIN` reads nothing, and stays a plain method.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

__all__ = ["TWINS", "twin_source"]

SOURCE = Path(__file__).parents[2] / "src" / "detent"

TWINS = {
    f"{room}/{name}.py": f"{room}/aio_{name}.py"
    for room, names in {
        "client": ("job", "operation"),
        "ops": ("ops",),
        "app": (
            *("alerts", "batch_run", "jobs", "lifecycles", "pipeline_run", "queues"),
            *("reconciliation", "record", "runs", "schedules", "tokens", "webhooks", "workers", "workflows"),
        ),
    }.items()
    for name in names
}
"""The sync module of each twin, below src/detent."""

PLAIN = {"attach", "where"}
"""Methods that read nothing."""

CONVERTED = {"Run": "async_run"}
"""Return types that a function converts, since they are unions of handles."""


class Class:
    """A public class of a sync module: a handle (it has a snapshot class below it) or a noun."""

    def __init__(self, node: ast.ClassDef, module: str) -> None:
        self.node = node
        self.name = node.name
        self.module = module
        self.snapshot = next((base for base in node.bases if _name(base).endswith("Snapshot")), None)

    @property
    def twin(self) -> str:
        return f"Async{self.name}"


def twin_source(path: str) -> str:
    """Return the source of the async twin of a sync module."""
    known = _classes()
    tree = ast.parse((SOURCE / path).read_text())
    module = _module(path)
    own = [one for one in known.values() if one.module == module]
    bodies = [_class(one, known) for one in own]
    body = "\n\n\n".join(bodies)
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    lines = [f'"""{ast.get_docstring(tree)}"""'.replace('"""', '"""The async twin of: ', 1)]
    lines.append(f"\n# Generated from {path} by `python -m tests.surface.twins`. Change that file instead.\n")
    lines.append("from __future__ import annotations\n")
    lines += sorted(_imports(tree, module, own, known, used))
    lines.append(f"\n__all__ = {sorted(one.twin for one in own)!r}\n")
    lines += [
        ast.unparse(node)
        for node in tree.body
        if isinstance(node, ast.Assign) and _name(node.targets[0]) in used and "TypeVar" in ast.unparse(node.value)
    ]
    return "\n".join(lines) + "\n\n\n" + body + "\n"


def _classes() -> dict[str, Class]:
    found = {}
    for path in TWINS:
        for node in ast.parse((SOURCE / path).read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.endswith("Snapshot") and _has_verbs(node):
                found[node.name] = Class(node, _module(path))
    return found


def _has_verbs(node: ast.ClassDef) -> bool:
    bases = {_name(base) for base in node.bases}
    return not any("Struct" in base for base in bases) and any(_methods(node)) and not node.name.startswith("_")


def _methods(node: ast.ClassDef) -> Iterable[ast.FunctionDef]:
    return (one for one in node.body if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"))


def _imports(tree: ast.Module, module: str, own: list[Class], known: dict[str, Class], used: set[str]) -> list[str]:
    found = []
    local = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    local |= {_name(node.targets[0]) for node in tree.body if isinstance(node, ast.Assign)}
    for node in tree.body:
        if isinstance(node, ast.Assign) and _name(node.targets[0]) in used and "TypeVar" in ast.unparse(node.value):
            local.discard(_name(node.targets[0]))
            used = used | {"TypeVar"}
        if isinstance(node, ast.If):
            tree.body += node.body
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names = [one.name for one in node.names if one.name in used and one.name != "annotations"]
            found += [f"from {node.module} import {', '.join(names)}"] if names else []
    here = sorted((used | {one.name for one in own}) & local)
    found.append(f"from {module} import {', '.join(here)}")
    for one in known.values():
        if one.twin in used and one not in own:
            found.append(f"from {_twin_module(one.module)} import {one.twin}")
    for helper in ("asleep_through", "aitems_of"):
        found += [f"from detent.client.aio_polling import {helper}"] if helper in used else []
    found += [f"from detent.app.aio_run_handle import {name}" for name in ("AsyncRun", "async_run") if name in used]
    found += ["import asyncio"] if "asyncio" in used else []
    found += ["from collections.abc import AsyncIterator"] if "AsyncIterator" in used else []
    return found


def _class(one: Class, known: dict[str, Class]) -> str:
    lines = [f"class {one.twin}({ast.unparse(one.snapshot)}):" if one.snapshot else f"class {one.twin}:"]
    lines.append(f'    """The async twin of `{one.name}`: the same verbs, awaited."""\n')
    if any(_is_slots(node) for node in one.node.body):
        lines.append("    __slots__ = ()\n")
    if not one.snapshot:
        lines += [f"    def __init__(self, sync: {one.name}) -> None:", "        self._sync = sync\n"]
    overloads: dict[str, ast.expr | None] = {}
    for method in _methods(one.node):
        if "overload" in {_name(decorator) for decorator in method.decorator_list}:
            overloads[method.name] = method.returns
        lines.append(_method(method, one, known, overloads))
    return "\n".join(lines)


def _method(
    method: ast.FunctionDef, owner: Class, known: dict[str, Class], overloads: dict[str, ast.expr | None]
) -> str:
    decorators = {_name(one) for one in method.decorator_list}
    doc = _docstring(method)
    returns, convert = _returned(method.returns, known)
    arguments = ast.unparse(method.args)
    parameterised = owner.snapshot is not None and "[" in ast.unparse(owner.snapshot)
    kind = f"{owner.name}[{_name(owner.snapshot.slice)}]" if parameterised else owner.name  # type: ignore[union-attr]
    sync = f"{owner.name}.like(self)" if owner.snapshot else "self._sync"
    call = f"{sync}.{method.name}"
    passed = ", ".join(_passed(method.args))
    if "property" in decorators:
        return f"    @property\n    def {method.name}(self) -> {returns}:\n{doc}        return {convert(call)}\n"
    head = f"def {method.name}({arguments}) -> {returns}:"
    if "overload" in decorators:
        return f"    @overload\n    async {head} ...\n"
    if method.name in overloads:
        # The last overload takes and returns everything; `_NAME` is the method without overloads.
        _, convert = _returned(overloads[method.name], known)
        head, call = f"def {method.name}({arguments}) -> Any:", f"{sync}._{method.name}"
    if method.name in PLAIN:
        return f"    {head}\n{doc}        return {convert(f'{call}({passed})')}\n"
    if method.name == "wait":
        return (
            f"    async {head}\n{doc}        sync: {kind} = {sync}\n"
            f"        await asleep_through(sync._wait_steps({passed}), sync._engine.clock)\n"
            f"        return self._adopt(sync)\n"
        )
    if returns.startswith("Iterator["):
        pages = f"sync._{method.name}_pages({passed})"
        return (
            f"    async {head.replace('-> Iterator[', '-> AsyncIterator[')}\n{doc}        sync = {sync}\n"
            f"        async for item in aitems_of({pages}, sync._engine.clock):\n            yield item\n"
        )
    work = f"await asyncio.to_thread({call}{', ' if passed else ''}{passed})"
    if returns == "Self":
        work = f"self._adopt({work})"
    if returns == "None":
        return f"    async {head}\n{doc}        {work}\n"
    return f"    async {head}\n{doc}        return {convert(work)}\n"


def _passed(arguments: ast.arguments) -> list[str]:
    named = [one.arg for one in (*arguments.posonlyargs, *arguments.args) if one.arg != "self"]
    named += [f"{one.arg}={one.arg}" for one in arguments.kwonlyargs]
    return named + ([f"**{arguments.kwarg.arg}"] if arguments.kwarg else [])


def _returned(annotation: ast.expr | None, known: dict[str, Class]) -> tuple[str, Callable[[str], str]]:
    """Return the twin of a return type, and what converts an expression of the sync type."""
    assert annotation is not None
    text, outer = ast.unparse(annotation), _name(annotation)
    if outer in CONVERTED:
        return f"Async{text}", lambda found: f"{CONVERTED[outer]}({found})"
    if outer in known:
        one = known[outer]
        make = f"{one.twin}.like" if one.snapshot else one.twin
        return f"Async{text}", lambda found: f"{make}({found})"
    if isinstance(annotation, ast.Subscript) and outer in ("ListPage", "list"):
        inner = _name(annotation.slice)
        if inner in known:
            return text.replace(inner, known[inner].twin, 1), lambda found: f"({found}).each({known[inner].twin}.like)"
        if inner in CONVERTED:
            return text.replace(inner, f"Async{inner}", 1), lambda found: f"({found}).each({CONVERTED[inner]})"
    return text, lambda found: found


def _is_slots(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and _name(node.targets[0]) == "__slots__"


def _docstring(method: ast.FunctionDef) -> str:
    text = (ast.get_docstring(method) or "").replace("\n", "\n        ").replace("\n        \n", "\n\n")
    end = "\n        " if "\n" in text else ""
    return f'        """{text}{end}"""\n'


def _name(node: ast.expr) -> str:
    return ast.unparse(node).partition("[")[0].rpartition(".")[2]


def _module(path: str) -> str:
    return f"detent.{path.removesuffix('.py').replace('/', '.')}"


def _twin_module(module: str) -> str:
    twin = next(twin for path, twin in TWINS.items() if _module(path) == module)
    return _module(twin)


def main() -> None:
    """Write every twin."""
    paths = []
    for path, twin in TWINS.items():
        (SOURCE / twin).write_text(twin_source(path))
        paths.append(str(SOURCE / twin))
    ruff = Path(sys.executable).with_name("ruff")
    subprocess.run([ruff, "check", "--quiet", "--select", "I", "--fix", *paths], check=True)
    subprocess.run([ruff, "format", "--quiet", *paths], check=True)


if __name__ == "__main__":
    main()
