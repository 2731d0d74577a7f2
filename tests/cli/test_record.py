"""`detent record` and `detent identities`."""

from __future__ import annotations

from tests.cli.shell import Shell, World


def test_search_finds_changes_by_actor_and_entity(shell: Shell, world: World) -> None:
    job_id = world.pending()
    shell.run("jobs", "cancel", job_id, "--actor", "ana", "--reason", "a mistake")
    shell.run("queues", "pause", "mail", "--actor", "ben")
    found = shell.run("record", "search", "--actor", "ana", "--since", "1h", "--json").json
    assert [(one["entity"], one["entity_id"], one["reason"]) for one in found] == [("job", str(job_id), "a mistake")]
    said = shell.run("record", "search").out
    assert said.index("pause") < said.index("a mistake")
    assert len(shell.run("record", "search", "--entity", "queue", "--id", "mail", "--json").json) == 1
    first = shell.run("record", "search", "--limit", 1)
    rest = shell.run("record", "search", "--after", first.err.split("--after ")[1].strip(), "--json").json
    assert [one["actor"] for one in rest] == ["ana"]
    refused = shell.run("record", "search", "--id", "mail")
    assert (refused.code, "--id goes with --entity" in refused.err) == (2, True)


def test_the_identity_is_shown_and_renewed_on_record(shell: Shell, world: World) -> None:
    """C5: with actor and reason; new jobs get other effect keys from then on."""
    (first,) = shell.run("identities", "list", "--json").json
    assert first["identity"] in shell.run("identities", "list").out
    ended = shell.run("identities", "renew", "--actor", "ana", "--reason", "restored into staging")
    before, after = shell.run("identities", "list", "--json").json
    assert (ended.code, ended.out) == (0, f"The new identity is {after['identity']}.\n")
    assert before == first
    assert (after["made_by"], after["reason"]) == ("ana", "restored into staging")
    assert shell.run("identities", "renew", "--json").json["identity"] not in (before["identity"], after["identity"])
