"""`detent archive`, and `detent backup` where the database is not a file."""

from __future__ import annotations

import json

from detent.archive.file import find_files
from detent.testing.stores import is_sqlite
from tests.cli.shell import Shell, World


def test_jobs_are_found_in_the_files_as_they_were(shell: Shell, world: World) -> None:
    """J16: `show` prints what `jobs get` printed, after the job is gone."""
    (place := shell.directory / "archive").mkdir()
    done, dead = world.succeeded(key="order 1"), world.dead()
    world.says(done, "the card was declined")
    live = shell.run("jobs", "get", done)
    refused = shell.run("archive", "write", place, "--older-than", "0s", "--delete", "--yes")
    assert refused.code == 2
    assert "--delete needs --reason" in refused.err
    future = shell.run("archive", "write", place, "--older-than", "2999-01-01")
    assert (future.code, "is in the future" in future.err) == (2, True)
    written = shell.run(
        *("archive", "write", place, "--older-than", "0s", "--state", "succeeded"),
        *("--delete", "--yes", "--reason", "a year old", "--actor", "ana", "--json"),
    )
    assert {"files": 1, "jobs": 1, "deleted": 1}.items() <= written.json.items()
    assert shell.run("jobs", "get", done).code == 3
    assert shell.run("archive", "show", place, done).out == live.out
    shown = shell.run("archive", "show", place, done, "--json").json
    assert [event["message"] for event in shown["events"]] == ["the card was declined"]
    assert [one["to_state"] for one in shown["transitions"]][-1] == "succeeded"
    assert shell.run("archive", "show", place, dead).code == 3
    assert shell.run("archive", "write", place, "--older-than", "0s").out.startswith("1 job written to 1 file")
    for search in (["card was"], ["--key", "order 1"], ["--id", str(done)], ["--state", "succeeded"]):
        assert [one["id"] for one in shell.run("archive", "grep", place, *search, "--json").json] == [str(done)]
    (line,) = shell.run("archive", "grep", place, "no such thing", "--lines").out.splitlines()
    assert [one["outcome"] for one in json.loads(line)["executions"]] == ["error"]
    one = shell.run("archive", "grep", place, "--limit", "1")
    assert (len(one.rows), "more than 1" in one.err) == (2, True)
    assert [line.split()[1] for line in shell.run("archive", "list", place).out.splitlines()] == ["JOBS", "1", "1"]

    broken = find_files(place)[0]
    broken.write_bytes(broken.read_bytes()[:-1])
    listed = shell.run("archive", "list", place)
    assert (listed.code, len(listed.rows)) == (1, 2)
    assert f"{broken} is damaged: it has" in listed.err
    found = shell.run("archive", "grep", place)
    assert (found.code, len(found.rows)) == (1, 2)


def test_a_server_has_its_own_tools_for_backups(shell: Shell) -> None:
    """J15: on PostgreSQL one sentence names them."""
    target = shell.directory / "copy.db"
    ended = shell.run("backup", target)
    if is_sqlite(shell.environment["DETENT_DATABASE_URL"]):
        assert (ended.code, target.exists()) == (0, True)
    else:
        assert "use pg_dump or pg_basebackup (docs/backup.md)" in ended.err
        assert (ended.code != 0, target.exists()) == (True, False)
