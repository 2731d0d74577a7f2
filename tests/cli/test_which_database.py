"""Which database and which application a command uses, and which commands may create a database."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest

from detent.cli.main import main
from detent.testing.stores import is_sqlite, plain_connection
from tests.cli.shell import APP, Ended, Shell, World
from tests.cli.test_program import PATHS, command_at

CREATE = {("migrate",), ("worker",), ("enqueue",), ("demo",), ("dev",)}
"""The commands that may create a database."""
NO_DATABASE = {("completion",), ("lifecycles", "diagram"), ("lifecycles", "get"), ("lifecycles", "list")}
"""The commands that use none."""
VALUES = {
    "BATCH": "reprice",
    "--cron": "* * * * *",
    "--concurrency": "5",
    "--format": "csv",
    "--state": "running",
    "--to": "cancelled",
    "--queue": "mail",
    "[JSON]": "{}",
}
MORE: dict[tuple[str, ...], list[str]] = {
    ("jobs", "settle"): ["--done"],
    ("jobs", "retry"): ["--state", "quarantined"],
    ("jobs", "discard"): ["1"],
    ("jobs", "move"): ["--queue", "mail", "--to-queue", "bulk"],
    ("queues", "recovery"): ["--automatic"],
    ("queues", "limit"): ["--concurrency", "5"],
}


def words(path: tuple[str, ...]) -> list[str]:
    """Return a valid call of this command."""
    given: list[str] = []
    for one in command_at(path).params:
        if isinstance(one, click.Argument) and one.required:
            given.append(_value(one, one.metavar or ""))
        elif isinstance(one, click.Option) and one.required:
            given += [one.opts[0], _value(one, one.opts[0])]
        elif isinstance(one, click.Option) and "--yes" in one.opts:
            given.append("--yes")
    return [*path, *given, *MORE.get(path, [])]


def _value(one: click.Parameter, name: str) -> str:
    if isinstance(one.type, click.Choice):
        return str(one.type.choices[0])
    return VALUES.get(name, "1")


def is_empty(url: str) -> bool:
    if is_sqlite(url):
        return not Path(url.removeprefix("sqlite:///")).exists()
    with plain_connection(url) as connection:
        return bool(connection.execute("SELECT to_regnamespace('detent') IS NULL").fetchone()[0])


def test_only_five_commands_create_a_database(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`runs apply --app` on a mistyped URL created an empty database."""
    (tmp_path / "shop_of_this_test.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("DETENT_DATABASE_URL", database_url)
    reached = 0
    for path in PATHS:
        if isinstance(command_at(path), click.Group) or path in CREATE | NO_DATABASE:
            continue
        for app in ([], ["--app", "shop_of_this_test:app"]):
            code = main([*words(path), *app])
            assert is_empty(database_url), (path, app)
            assert code in (1, 2, 5), path
            reached += code == 5
    monkeypatch.delitem(sys.modules, "shop_of_this_test")
    assert reached > 100, "most of these calls must come as far as the database"


def test_the_application_is_named_by_the_environment(shell: Shell, world: World) -> None:
    assert shell.run("enqueue", "add", '{"a":1,"b":2}').code == 2
    told = shell.run("enqueue", "add", '{"a":1,"b":2}', DETENT_APP="shop:app")
    assert told.code == 0, told.err
    assert world.app.jobs.get(told.out.strip()).row.task == "add"
    over = shell.run("jobs", "list", "--app", "shop:app", DETENT_APP="nowhere:app")
    assert over.code == 0, over.err
    before = shell.run("--app", "shop:app", "jobs", "list", DETENT_APP="nowhere:app")
    assert before.code == 0, before.err
    wrong = shell.run("jobs", "list", DETENT_APP="nowhere:app")
    assert (wrong.code, wrong.err) == (
        2,
        "detent: DETENT_APP: found no module 'nowhere'; allowed: a module that can be imported from here\n",
    )


def test_a_worker_of_the_application_in_the_environment(sqlite_shell: Shell) -> None:
    missing = sqlite_shell.run("worker", "--drain")
    assert (missing.code, missing.out) == (2, "")
    assert "DETENT_APP" in missing.err
    assert sqlite_shell.run("worker", "--drain", DETENT_APP="shop:app").code == 0
    assert sqlite_shell.run("worker", "--drain", "--app", "shop:app").code == 0, "it took no --app"


def test_the_demo_has_its_own_application(sqlite_shell: Shell) -> None:
    assert sqlite_shell.run("demo", "--help", DETENT_APP="shop:app").code == 0
    assert sqlite_shell.run("demo", "--app", "shop:app").code == 2


# -- long values -----------------------------------------------------------------------------------------------

LONG = "x" * 50_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "list", "--limit", LONG),
        ("jobs", "list", "--state", LONG),
        ("jobs", "list", f"--{LONG}"),
        ("jobs", LONG),
        ("jobs", "list", "--app", f"{LONG}:app"),
        ("jobs", "list", "--app", f"shop:{LONG}"),
        ("jobs", "list", "--database", f"sqlite:///{LONG}"),
        ("enqueue", LONG, "--app", "shop:app"),
        ("enqueue", "add", f'{{"{LONG}":1}}', "--app", "shop:app"),
        ("enqueue", "add", "--due-at", LONG, "--app", "shop:app"),
        ("enqueue", "add", "--key-ttl", LONG, "--app", "shop:app"),
        ("lifecycles", "diagram", LONG),
        ("worker", LONG),
        ("worker", "shop:app", "--queues", LONG),
        ("worker", "shop:app", "--queues", f"mail:{LONG}"),
        ("worker", "shop:app", "--name", LONG),
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_a_long_value_is_cut_in_the_error(sqlite_shell: Shell, arguments: tuple[str, ...]) -> None:
    """An option of 100 kB filled the terminal with the error that refused it."""
    ended = sqlite_shell.run(*arguments)
    assert ended.code in (2, 3, 5), ended.err[:300]
    assert 0 < len(ended.err) < 2_000
    assert len(ended.err.splitlines()) == 1


def test_a_long_value_in_the_environment(sqlite_shell: Shell) -> None:
    for name in ("DETENT_PAYLOAD_MAX", "DETENT_KEEP_KEYS", "DETENT_APP"):
        ended = sqlite_shell.run("jobs", "list", **{name: LONG})
        assert (ended.code, len(ended.err) < 2_000) == (2, True), name


# -- links and odd names ---------------------------------------------------------------------------------------


def _refusals(shell: Shell, url: str) -> list[Ended]:
    calls = (["migrate"], ["verify"], ["doctor"], ["enqueue", "add", '{"a":1,"b":2}', "--app", "shop:app"])
    return [shell.run(*call, "--database", url) for call in calls]


def test_a_dangling_link_is_refused_by_every_command(lone_shell: Shell) -> None:
    """`migrate` created the file the link names, and `verify` did not find it."""
    link, target = lone_shell.directory / "shop.db", lone_shell.directory / "volume" / "shop.db"
    target.parent.mkdir()
    link.symlink_to(target)
    for ended in _refusals(lone_shell, "sqlite:///shop.db"):
        assert ended.code in (1, 5), ended
        assert f"shop.db is a symbolic link to {target}, and there is no such file" in ended.out + ended.err
    assert list(target.parent.iterdir()) == []


def test_a_link_to_a_database_is_followed(lone_shell: Shell) -> None:
    assert lone_shell.run("migrate", "--database", "sqlite:///real.db").code == 0
    (lone_shell.directory / "shop.db").symlink_to("real.db")
    assert [ended.code for ended in _refusals(lone_shell, "sqlite:///shop.db")] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("written", "name"), [("what%3F.db", "what?.db"), ("100%25%20sure.db", "100% sure.db"), ("100%.db", "100%.db")]
)
def test_a_file_with_an_odd_name(lone_shell: Shell, written: str, name: str) -> None:
    """A file with a `?` in its name could not be named."""
    for ended in _refusals(lone_shell, f"sqlite:///{written}"):
        assert ended.code == 0, ended
    found = {path.name for path in lone_shell.directory.iterdir() if path.name.endswith(".db")}
    assert found == {name}
    report = lone_shell.run("doctor", "--database", f"sqlite:///{written}")
    assert f"sqlite:///{written.replace('%.', '%25.').replace('%20', ' ')}" in report.out


def test_options_after_a_question_mark_are_refused_with_the_way_to_write_one(lone_shell: Shell) -> None:
    ended = lone_shell.run("migrate", "--database", "sqlite:///shop.db?mode=ro")
    assert ended.code == 2
    assert "%3F" in ended.err
