"""A program that is run and the same program imported by a worker mean the same tasks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from detent import Context, Detent

app = Detent("sqlite:///never.db")


@app.task
def welcome(ctx: Context) -> None: ...


print(welcome.name)
"""


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["shop.py"], "shop.welcome"),
        (["-c", "import shop"], "shop.welcome"),
        (["-m", "shop"], "shop.welcome"),
        (["-m", "mall.shop"], "mall.shop.welcome"),
        (["-c", "import mall.shop"], "mall.shop.welcome"),
        (["-m", "mall"], "mall.welcome"),
        (["-c", PROGRAM], "welcome"),
    ],
)
def test_a_task_has_one_name_however_its_program_is_run(tmp_path: Path, arguments: list[str], name: str) -> None:
    """What `python shop.py` sent, no worker of `shop:app` knew: it waited for ever."""
    (tmp_path / "mall").mkdir()
    for place in ("shop.py", "mall/shop.py", "mall/__main__.py"):
        (tmp_path / place).write_text(PROGRAM)
    (tmp_path / "mall" / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == f"{name}\n"
