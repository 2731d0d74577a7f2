"""`detent tokens`."""

from __future__ import annotations

from tests.cli.shell import Shell


def test_a_token_is_created_listed_and_revoked(shell: Shell) -> None:
    """S4: the text of a token is printed once, alone on stdout, so that a script can keep it."""
    made = shell.run("tokens", "create", "dashboard", "--role", "operator", "--tenant", "acme", "--expires-in", "90d")
    assert (made.code, made.out[:4], len(made.out.split())) == (0, "dtn_", 1)
    assert "token dashboard: operator, tenant acme, until " in made.err
    again = shell.run("tokens", "create", "dashboard")
    assert (again.code, again.out) == (4, "")
    assert "a token 'dashboard' exists already; revoke it first, or choose another name" in again.err
    listed = shell.run("tokens", "list", "--json")
    (row,) = listed.json
    assert (row["name"], row["role"], row["tenant"], row["last_used_at"]) == ("dashboard", "operator", "acme", None)
    assert "dtn_" not in listed.out
    assert "hash" not in row
    revoked = shell.run("tokens", "revoke", "dashboard", "--reason", "leaked", "--actor", "ana")
    assert revoked.out == "token dashboard: revoked\n"
    assert shell.run("tokens", "revoke", "dashboard").out == "token dashboard: revoked (unchanged)\n"
    assert shell.run("tokens", "list").err == "no tokens; create one with `detent tokens create`\n"
    assert [one["revoked_by"] for one in shell.run("tokens", "list", "--revoked", "--json").json] == ["ana"]
    record = shell.run("record", "search", "--entity", "token", "--json").json
    assert [(one["trigger"], one["reason"]) for one in record] == [("revoke", "leaked"), ("create", None)]


def test_what_is_no_token(sqlite_shell: Shell) -> None:
    for arguments, complaint in (
        (("create", "x", "--role", "root"), "root"),
        (("create", ""), "name"),
        (("create", "x", "--tenant", ""), "tenant"),
        (("create", "x", "--expires-in", "-5"), "expires"),
        (("list", "--after", "x"), "the `next` of the page before"),
    ):
        ended = sqlite_shell.run("tokens", *arguments)
        assert (ended.code, ended.out) == (2, ""), arguments
        assert complaint in ended.err
    assert sqlite_shell.run("tokens", "revoke", "nobody").code == 3
    assert sqlite_shell.run("tokens", "list", "--revoked", "--json").json == []
