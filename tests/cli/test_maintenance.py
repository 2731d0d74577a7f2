"""`detent migrate`, `doctor`, `verify`, `repair`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from detent.testing.stores import dump, plain_connection, table
from tests.cli.shell import Shell, World
from tests.store.invariants.owner import Owner


def lose_the_ready_rows(shell: Shell) -> None:
    """Damage that a person at a SQL prompt can do: pending jobs that no claim can find."""
    url = shell.environment["DETENT_DATABASE_URL"]
    with closing(plain_connection(url)) as connection:
        connection.execute(f"DELETE FROM {table(url, 'ready')}")
        connection.commit()


def test_migrate_says_what_it_applied_and_then_that_there_is_nothing_to_do(bare_shell: Shell) -> None:
    applied = bare_shell.run("migrate", "--json").json["applied"]
    assert applied[0] == "0001_tables"
    ended = bare_shell.run("migrate")
    assert (ended.code, ended.out, ended.err) == (0, "", "the schema is up to date\n")


def test_migrate_checks_and_prints_without_touching(bare_shell: Shell) -> None:
    """L8: --check is for scripts, --print is for review."""
    missing = bare_shell.run("migrate", "--check")
    assert missing.code == 1
    assert missing.out.startswith("missing 0001_tables\n")
    printed = bare_shell.run("migrate", "--print")
    assert printed.code == 0
    assert "CREATE TABLE" in printed.out
    checked = bare_shell.run("migrate", "--check", "--json")
    assert (checked.code, checked.json["schema"]) == (1, 0)
    assert checked.json["missing"] == bare_shell.run("migrate", "--json").json["applied"]
    assert bare_shell.run("migrate", "--check").code == 0
    assert bare_shell.run("migrate", "--print").out == ""


def test_functions_that_differ_are_reported_and_installed(tmp_path: Path, postgres_url: str) -> None:
    """L8: `--check` and `doctor` find them, `migrate` names what it installs."""
    shell = Shell(tmp_path, postgres_url)
    shell.run("migrate")
    with closing(plain_connection(postgres_url)) as connection:
        connection.execute("DROP FUNCTION detent.counts_v1(text)")
        connection.commit()
    checked = shell.run("migrate", "--check")
    assert (checked.code, checked.out) == (1, "differs function counts_v1\n")
    assert shell.run("migrate", "--check", "--json").json["differs"] == ["function counts_v1"]
    assert shell.run("migrate").out == "applied function counts_v1\n"
    with closing(plain_connection(postgres_url)) as connection:
        connection.execute("UPDATE detent.installed SET fingerprint = 'another'")
        connection.commit()
    (found,) = [one for one in shell.run("doctor", "--json").json if one["check"] == "functions"]
    assert (found["verdict"], found["detail"].endswith("; run `detent migrate`")) == ("warn", True)


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "list"),
        ("verify",),
        ("queues", "pause", "mail"),
        ("top", "--once"),
        ("jobs", "retry", "--state", "quarantined"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_reading_creates_no_database(bare_shell: Shell, arguments: tuple[str, ...]) -> None:
    """U2: a mistyped address used to look like a healthy database without jobs."""
    url = bare_shell.environment["DETENT_DATABASE_URL"]
    ended = bare_shell.run(*arguments)
    assert (ended.code, ended.out) == (5, "")
    assert url.rpartition("/")[2] in ended.err
    assert "`detent migrate` makes it" in ended.err
    assert bare_shell.run("migrate", "--check").code == 1
    assert not list(bare_shell.directory.glob("*.db*"))


def test_check_and_roles_exclude_each_other(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("migrate", "--check", "--roles")
    assert ended.code == 2
    assert "choose one" in ended.err


def test_sqlite_has_no_roles(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("migrate", "--roles")
    assert ended.code == 4
    assert "SQLite" in ended.err


def test_a_healthy_record_verifies(shell: Shell, world: World) -> None:
    """R2: invariants on demand."""
    world.succeeded()
    ended = shell.run("verify")
    assert (ended.code, ended.out) == (0, "healthy: no invariant is violated\n")
    assert shell.run("verify", "--json").json == []


def test_damage_is_found_planned_and_repaired(shell: Shell, world: World) -> None:
    """R3: verify finds it, repair shows its plan first, and carries it out with --yes and a reason."""
    job_id = world.pending()
    lose_the_ready_rows(shell)

    found = shell.run("verify")
    assert found.code == 1
    assert f" {job_id} " in found.out
    assert "detent repair" in found.err

    planned = shell.run("repair")
    assert planned.code == 0
    assert "would" in planned.out
    assert "nothing was changed" in planned.err
    assert shell.run("verify", "--json").json != []

    done = shell.run("repair", "--yes", "--reason", "somebody deleted rows", "--json")
    assert done.code == 0
    assert done.json["applied"] is True
    assert {step["entity_id"] for step in done.json["steps"]} == {str(job_id)}
    assert shell.run("verify").code == 0
    assert shell.run("repair").err == "nothing to repair\n"


def test_a_repair_needs_a_reason(sqlite_shell: Shell) -> None:
    ended = sqlite_shell.run("repair", "--yes")
    assert ended.code == 2
    assert "--reason" in ended.err


def test_a_repair_at_a_terminal_shows_the_plan_and_asks(shell: Shell, world: World) -> None:
    world.pending()
    lose_the_ready_rows(shell)
    assert shell.at_terminal("repair", "--reason", "rows are gone", types="n\n").code == 130
    assert world.app.record.verify() != []
    ended = shell.at_terminal("repair", "--reason", "rows are gone", types="y\n")
    assert ended.code == 0
    assert ended.out.index("would") < ended.out.index("carry out 1 step? [y/N]") < ended.out.rindex("done")
    assert world.app.record.verify() == []


def test_a_schema_from_the_future_is_left_alone(shell: Shell, world: World) -> None:
    """L8: a database that a newer Detent has migrated is refused with what would help."""
    world.pending()
    url = shell.environment["DETENT_DATABASE_URL"]
    with closing(plain_connection(url)) as connection:
        later = "2026-01-01" if "postgres" in url else "0"
        connection.execute(
            f"INSERT INTO {table(url, 'migration')} (version, name, checksum, oldest_code, applied_at) "
            f"VALUES (9999, 'later', 'x', 9999, '{later}')"
        )
        connection.commit()
    refused = shell.run("jobs", "list")
    assert refused.code == 5
    assert "upgrade Detent" in refused.err
    ended = shell.run("doctor", "--json")
    assert ended.code == 1
    assert [(one["check"], one["verdict"]) for one in ended.json] == [("schema", "fail")]


@pytest.mark.parametrize("command", [["migrate"], ["migrate", "--check"], ["repair"], ["verify"], ["jobs", "list"]])
def test_a_hole_in_the_list_of_migrations_is_refused(shell: Shell, world: World, command: list[str]) -> None:
    """L8: by one clear sentence, and nothing is written."""
    world.pending()
    with closing(Owner(shell.environment["DETENT_DATABASE_URL"])) as owner:
        at = "0" if owner.sqlite else "now()"
        owner.plant(
            f"INSERT INTO {{migration}} VALUES (2, 'later', 'x', 1, {at})", "DELETE FROM {migration} WHERE version = 1"
        )
    before = dump(shell.environment["DETENT_DATABASE_URL"])
    ended = shell.run(*command)
    assert ended.code == 5
    assert "0001_tables is not in its list of migrations" in ended.err
    assert dump(shell.environment["DETENT_DATABASE_URL"]) == before


@pytest.mark.parametrize(
    "command",
    [
        ["migrate"],
        ["migrate", "--check"],
        ["migrate", "--print"],
        ["repair"],
        ["verify"],
        ["jobs", "list"],
        ["queues", "pause", "mail"],
        ["top", "--once"],
        ["doctor"],
    ],
)
def test_a_database_of_an_unreleased_version_is_refused(shell: Shell, world: World, command: list[str]) -> None:
    """L8: every command says what was found and what to do, in one sentence, and nothing is written."""
    world.pending()
    with closing(Owner(shell.environment["DETENT_DATABASE_URL"])) as owner:
        owner.plant("UPDATE {migration} SET name = 'record', checksum = 'then' WHERE version = 1")
    before = dump(shell.environment["DETENT_DATABASE_URL"])
    ended = shell.run(*command)
    said = "schema 1 was created by an unreleased version of Detent and cannot be used; use a new database"
    if command == ["doctor"]:
        assert (ended.code, said in ended.out) == (1, True)
    else:
        assert (ended.code, ended.err.count(said), ended.err.count("\n")) == (5, 1, 1)
    assert dump(shell.environment["DETENT_DATABASE_URL"]) == before


def test_an_older_release_does_not_replace_what_a_newer_one_installed(shell: Shell, world: World) -> None:
    """L8: `migrate` refuses, `--check` agrees, and jobs go on."""
    installed = table(shell.environment["DETENT_DATABASE_URL"], "installed")
    with closing(plain_connection(shell.environment["DETENT_DATABASE_URL"])) as connection:
        connection.execute(f"UPDATE {installed} SET release = '999.0.0', fingerprint = 'newer'")
        connection.commit()
    before = dump(shell.environment["DETENT_DATABASE_URL"])
    for command in (["migrate"], ["migrate", "--check"], ["migrate", "--print"]):
        ended = shell.run(*command)
        assert ended.code == 4
        assert "Detent 999.0.0 has installed its functions, triggers and views in this database" in ended.err
        assert "nothing was changed" in ended.err
    assert dump(shell.environment["DETENT_DATABASE_URL"]) == before
    assert shell.run("jobs", "list").code == 0


def test_migrate_check_refuses_a_schema_that_is_too_new(shell: Shell, world: World) -> None:
    """L8: "up to date" would be wrong, and so would exit code 0."""
    migrations = table(shell.environment["DETENT_DATABASE_URL"], "migration")
    with closing(plain_connection(shell.environment["DETENT_DATABASE_URL"])) as connection:
        connection.execute(
            f"INSERT INTO {migrations} (version, name, checksum, oldest_code, applied_at) "
            f"SELECT 9999, 'future', 'x', 9999, applied_at FROM {migrations} WHERE version = 1"
        )
        connection.commit()
    ended = shell.run("migrate", "--check")
    assert ended.code == 5
    assert "schema 9999 is newer than this version of Detent" in ended.err
    assert "up to date" not in ended.out + ended.err
