"""Builds the console before the wheel or the source archive is made. Without Node, the package is built without it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ConsoleHook(BuildHookInterface[Any]):
    """Runs `console/build.py`. A source archive has the built files and the sources that they were built from."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the console, unless the package is installed for editing: `make setup` builds it then."""
        program = Path(self.root) / "console" / "build.py"
        if version == "editable" or not program.is_file():
            return
        spec = importlib.util.spec_from_file_location("console_build", program)
        assert spec is not None
        assert spec.loader is not None
        console = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(console)
        try:
            console.build(fetch_node=False)
        except console.BuildFailed as error:
            self.app.display_warning(f"The console was not built: {error}")
