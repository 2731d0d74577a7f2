"""How `detent` behaves as a program: exit codes, pipes, terminals, settings, imports, help."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from detent.cli.failures import exit_code
from detent.cli.main import COMMANDS, root
from detent.errors import TABLE
from tests.cli.shell import SECONDS_MAX, Shell, World

ROOT = Path(__file__).parents[2]


def paths(group: click.Group, *before: str) -> Iterator[tuple[str, ...]]:
    """Yield the path of every command and group."""
    yield before
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from paths(command, *before, name)
        else:
            yield (*before, name)


def command_at(path: tuple[str, ...]) -> click.Command:
    command: click.Command = root
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return command


PATHS = list(paths(root))


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_everything_has_help(path: tuple[str, ...]) -> None:
    """U2: every command and option has a help text, and every command takes --json."""
    command = command_at(path)
    assert command.help
    assert "--help" in command.get_help(click.Context(command, info_name="detent"))
    options = [one for one in command.params if isinstance(one, click.Option)]
    assert all(one.help for one in options)
    assert {"--json", "--database", "--actor"} <= {name for one in options for name in one.opts}


def test_help_comes_from_the_program_itself(lone_shell: Shell) -> None:
    for path in ((), ("jobs",), ("jobs", "list")):
        ended = lone_shell.run(*path, "--help")
        assert ended.code == 0
        assert ended.out.startswith("Usage: detent")


def test_help_imports_little() -> None:
    """U2: help is fast. It imported most of Detent, and took five times as long."""
    script = (
        "import sys\nbefore = set(sys.modules)\nfrom detent.cli.main import main\nassert main(['--help']) == 0\n"
        "print(*sorted(set(sys.modules) - before), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=SECONDS_MAX)
    imported = done.stderr.split()
    assert done.returncode == 0
    rooms = {".".join(name.split(".")[:2]) for name in imported if name.startswith("detent")}
    assert rooms == {"detent", "detent.cli", "detent.errors", "detent.model"}
    assert [name for name in imported if name.startswith(("detent.cli.commands.", "detent.cli.doctor"))] == []
    assert {name.split(".")[0] for name in imported} & {"asyncio", "psycopg", "rich", "sqlite3", "ssl"} == set()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_command_says(name: str) -> None:
    """The list is printed without importing the commands."""
    assert COMMANDS[name][1] == command_at((name,)).get_short_help_str(200)


def test_short_help_is_not_cut() -> None:
    """In a list of commands, each has a whole sentence, also at a width of 80 characters."""
    for path in PATHS:
        command = command_at(path)
        if isinstance(command, click.Group):
            text = command.get_help(click.Context(command, info_name="detent", terminal_width=80))
            assert "..." not in text.replace("[ARGS]...", ""), path


def test_the_page_shows_both_halves_of_a_pair() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    pairs = [
        (one.opts[0], one.secondary_opts[0])
        for path in PATHS
        for one in command_at(path).params
        if isinstance(one, click.Option) and one.secondary_opts
    ]
    assert ("--done", "--not-done") in pairs
    assert all(f"- `{on}` / `{off}`: " in page for on, off in pairs)


def test_version(lone_shell: Shell) -> None:
    assert lone_shell.run("--version").out.startswith("detent 0.")


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_scripts_call_back(lone_shell: Shell, shell_name: str) -> None:
    """U2: completion."""
    ended = lone_shell.run("completion", shell_name)
    assert (ended.code, ended.err) == (0, "")
    assert f"_DETENT_COMPLETE={shell_name}_complete" in ended.out


def test_completion_knows_commands_and_states(lone_shell: Shell) -> None:
    asked = {"_DETENT_COMPLETE": "bash_complete", "COMP_WORDS": "detent jobs list --state ", "COMP_CWORD": "4"}
    assert "plain,quarantined" in lone_shell.run(**asked).out.splitlines()
    asked |= {"COMP_WORDS": "detent jo", "COMP_CWORD": "1"}
    assert lone_shell.run(**asked).out.splitlines() == ["plain,jobs"]


@pytest.mark.parametrize("kind", TABLE, ids=lambda kind: kind.__name__)
def test_every_error_has_its_exit_code(kind: type[Exception]) -> None:
    assert exit_code(kind.__new__(kind)) == TABLE[kind].exit  # type: ignore[index]


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("sqlite:///nowhere/x.db", 5),
        ("sqlite:///shop.py", 5),
        ("postgresql://ana:secret@127.0.0.1:1/x", 5),
        ("sqlite://x", 2),
        ("mysql://ana:secret@host/x", 2),
        ("nonsense", 2),
    ],
)
def test_a_bad_database_url_is_reported_without_its_password(lone_shell: Shell, url: str, code: int) -> None:
    """U2: 5 if the database cannot be used, 2 if the URL is invalid."""
    ended = lone_shell.run("jobs", "list", "--database", url)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("detent: ")
    assert len(ended.err.splitlines()) == 1
    assert "secret" not in ended.err


@pytest.mark.parametrize(
    "arguments", [("jbos",), ("jobs", "lst"), ("jobs", "get"), ("jobs", "list", "--no"), ("jobs", "list", "x")]
)
def test_a_typo_is_code_2_and_points_at_the_help(lone_shell: Shell, arguments: tuple[str, ...]) -> None:
    ended = lone_shell.run(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("detent: ")
    assert "--help`." in ended.err


def test_flag_over_environment_over_file(lone_shell: Shell) -> None:
    """U2: the sources of the database URL, in order."""
    (lone_shell.directory / "detent.toml").write_text('database_url = "sqlite:///file.db"\n')
    lone_shell.run("migrate")
    lone_shell.run("migrate", DETENT_DATABASE_URL="sqlite:///environment.db")
    lone_shell.run("migrate", "--database", "sqlite:///flag.db", DETENT_DATABASE_URL="sqlite:///unused.db")
    assert {path.name for path in lone_shell.directory.glob("*.db")} == {"file.db", "environment.db", "flag.db"}


def test_a_traceback_only_when_asked_for(sqlite_shell: Shell) -> None:
    assert "Traceback" not in sqlite_shell.run("jobs", "get", 1).err
    ended = sqlite_shell.run("jobs", "get", 1, DETENT_DEBUG="1")
    assert ended.code == 3
    assert "Traceback" in ended.err
    assert ended.err.splitlines()[-1].startswith("detent: there is no job 1")


def test_a_closed_pipe_is_no_error_message(sqlite_shell: Shell) -> None:
    world = World(sqlite_shell.environment["DETENT_DATABASE_URL"])
    job_id = world.pending()
    for number in range(40):
        world.says(job_id, f"{number} of many lines, more than a pipe can hold " * 200)
    world.app.close()
    process = sqlite_shell.start("jobs", "events", job_id)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(SECONDS_MAX) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_output_that_cannot_be_written_is_a_failure(sqlite_shell: Shell) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            sqlite_shell.argv("verify"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=sqlite_shell.directory,
            env=sqlite_shell.environment,
            timeout=SECONDS_MAX,
        )
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_colour_is_used_only_at_a_terminal(sqlite_shell: Shell) -> None:
    world = World(sqlite_shell.environment["DETENT_DATABASE_URL"])
    world.succeeded()
    world.app.close()
    assert "\x1b[32msucceeded\x1b[0m" in sqlite_shell.at_terminal("jobs", "list").out
    for without in (
        sqlite_shell.run("jobs", "list"),
        sqlite_shell.at_terminal("jobs", "list", NO_COLOR="1"),
        sqlite_shell.at_terminal("jobs", "list", TERM="dumb"),
        sqlite_shell.at_terminal("jobs", "list", "--json"),
    ):
        assert "succeeded" in without.out
        assert "\x1b" not in without.out


def test_a_narrow_terminal_gets_short_lines(sqlite_shell: Shell) -> None:
    world = World(sqlite_shell.environment["DETENT_DATABASE_URL"])
    world.dead(error="long " * 100)
    world.app.close()
    cut = sqlite_shell.at_terminal("dead", "list", NO_COLOR="1", COLUMNS="60").out.splitlines()
    assert all(len(line) <= 60 for line in cut)
    assert cut[-1].endswith("…")
    assert len(sqlite_shell.run("dead", "list").out.splitlines()[-1]) > 300


def test_characters_that_the_encoding_lacks_are_escaped(sqlite_shell: Shell) -> None:
    world = World(sqlite_shell.environment["DETENT_DATABASE_URL"])
    world.pending(queue="grüße")
    world.app.close()
    ended = sqlite_shell.run("queues", "list", PYTHONIOENCODING="ascii")
    assert ended.code == 0
    assert "gr\\xfc\\xdfe" in ended.out


@pytest.mark.parametrize("svg", [False, True])
def test_diagram_draws_what_is_declared(lone_shell: Shell, svg: bool) -> None:
    """L7: Mermaid or SVG, Detent's own lifecycles and an application's."""
    form = ("--format", "svg") if svg else ()
    own = lone_shell.run("lifecycles", "diagram", "job", *form)
    assert own.code == 0
    assert own.out.startswith("<svg" if svg else "stateDiagram-v2")
    assert "quarantined" in own.out
    theirs = lone_shell.run("lifecycles", "diagram", "order", "--app", "shop:app", *form, "--json").json
    assert theirs["format"] == ("svg" if svg else "mermaid")
    assert "paid" in theirs["text"]


def test_diagram_refuses_an_unknown_lifecycle(lone_shell: Shell) -> None:
    ended = lone_shell.run("lifecycles", "diagram", "order")
    assert ended.code == 3
    assert "there is no lifecycle 'order'; there are: job, execution" in ended.err
