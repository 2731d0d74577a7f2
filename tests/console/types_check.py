"""Checks the types of the console against the HTTP API as it is now: `python -m tests.console.types_check`."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from detent.http.api import list_verbs
from detent.http.bodies import encode
from detent.http.description import describe

__all__ = ["build_program", "check_types"]

ROOT = Path(__file__).parents[2]
CONSOLE = ROOT / "console"


def build_program() -> ModuleType:
    """Return `console/build.py` as a module."""
    spec = importlib.util.spec_from_file_location("console_build", CONSOLE / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check_types() -> str:
    """Generate the types of the API, check the console against them, and return what is wrong; an empty text if
    nothing is."""
    program = build_program()
    program.build(development=True)
    node = program.find_node()
    described = CONSOLE / "node_modules" / "openapi.json"
    described.write_text(json.dumps(json.loads(encode(describe(list_verbs(), version="0"))), sort_keys=True))
    tools = CONSOLE / "node_modules"
    types = str(CONSOLE / "src" / "api" / "schema.d.ts")
    generate = ["openapi-typescript/bin/cli.js", str(described), "--default-non-nullable=false", "-o", types]
    for script, *arguments in (generate, ["typescript/bin/tsc", "--noEmit", "-p", str(CONSOLE)]):
        done = subprocess.run(
            [*node.node, str(tools / script), *arguments],
            cwd=CONSOLE, env=node.environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            return done.stdout + done.stderr
    return ""


if __name__ == "__main__":
    wrong = check_types()
    sys.stdout.write(wrong)
    sys.exit(1 if wrong else 0)
