"""Detent from the wheel, without extras: SQLite and the command line work, and the rest says what to install."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.deadlines import until
from tests.packaging.installed import Installed

URL = "sqlite:///shop.db"
SHELLS = {
    "bash": ("bash --norc --noprofile -i", 'eval "$(detent completion bash)"'),
    "zsh": ("zsh -f -i", 'autoload -U compinit; compinit -D -u; eval "$(detent completion zsh)"'),
}


def test_jobs_run_on_sqlite(bare: Installed, packages: Path) -> None:
    where = bare.run("-c", "import detent; print(detent.__file__)").out
    assert str(packages) in where
    assert bare.detent("migrate", "--database", URL).code == 0
    enqueued = bare.detent("enqueue", "shop.add", '{"a": 1, "b": 2}', "--app", "shop:app", "--database", URL)
    assert enqueued.code == 0, enqueued.err
    drained = bare.detent("worker", "shop:app", "--drain", "--database", URL)
    assert drained.code == 0, drained.err
    job = enqueued.out.strip()
    assert '"result": 3' in bare.detent("jobs", "get", job, "--json", "--database", URL).out
    assert bare.detent("doctor", "--database", URL).code == 0
    assert bare.detent("verify", "--database", URL).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "extra"),
    [
        (("migrate", "--database", "postgresql://ana@localhost/shop"), 2, "postgres"),
        (("server", "--database", URL), 2, "server"),
        (("dev", "shop:app"), 2, "server"),
        (("worker", "shop:app", "--database", URL, "--metrics-port", "0"), 2, "metrics"),
    ],
)
def test_a_missing_extra_is_named_in_one_sentence(
    bare: Installed, arguments: tuple[str, ...], code: int, extra: str
) -> None:
    """`migrate` said `unexpected ModuleNotFoundError: No module named 'psycopg'`."""
    ended = bare.detent(*arguments)
    assert (ended.code, len(ended.err.splitlines())) == (code, 1), ended.err
    assert f"`pip install 'detent[{extra}]'`" in ended.err


def test_without_django_the_import_names_the_extra(bare: Installed) -> None:
    ended = bare.run("-c", "import detent.integrations.django")
    assert ended.code == 1
    assert "needs Django, which is not installed. Run `pip install 'detent[django]'`" in ended.err.splitlines()[-1]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_press_of_tab_completes_a_command(shell: str, bare: Installed, tmp_path: Path) -> None:
    start, load = SHELLS[shell]
    with Terminal(start, environment_of(shell, bare, tmp_path), bare.directory) as terminal:
        terminal.write(f"{load}; echo loa''ded\n")
        terminal.read_until("loaded")
        terminal.write("detent lifec\t--help\n")
        terminal.read_until("Usage: detent lifecycles")


def test_fish_completes_a_command(bare: Installed, tmp_path: Path) -> None:
    script = "detent completion fish | source; complete --do-complete 'detent lifec'"
    environment = environment_of("fish", bare, tmp_path)
    done = subprocess.run(["fish", "--no-config", "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout.split("\t")[0].strip() == "lifecycles", done.stdout + done.stderr


def environment_of(shell: str, bare: Installed, directory: Path) -> dict[str, str]:
    """An environment with `detent` on the path."""
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    program = directory / "bin" / "detent"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {" ".join(bare.python)} -m detent.cli "$@"\n')
    program.chmod(0o755)
    return bare.environment | {"PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "> "}


class Terminal:
    """A shell at a terminal, as a person uses it."""

    def __init__(self, command: str, environment: dict[str, str], directory: Path) -> None:
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            command.split(), stdin=slave, stdout=slave, stderr=slave, env=environment, cwd=directory,
            start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        os.set_blocking(self._master, False)
        self._said = ""

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    def write(self, text: str) -> None:
        os.write(self._master, text.encode())

    def read_until(self, text: str) -> None:
        """Read what the shell prints until a text is in it, and forget it up to there."""
        until(lambda: text in self._read(), f"{text!r} at the terminal")
        self._said = self._said.partition(text)[2]

    def _read(self) -> str:
        with suppress(BlockingIOError):
            self._said += os.read(self._master, 65536).decode(errors="replace")
        return self._said
