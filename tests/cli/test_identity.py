"""`detent identity`."""

from __future__ import annotations

from tests.cli.shell import Shell, World


def test_it_is_shown_and_renewed_on_record(shell: Shell, world: World) -> None:
    """C5: with who and why; new jobs have other effect keys from then on."""
    (first,) = shell.run("identities", "list", "--json").json
    assert first["identity"] in shell.run("identities", "list").out
    ended = shell.run("identities", "renew", "--actor", "ana", "--reason", "restored into staging")
    before, after = shell.run("identities", "list", "--json").json
    assert (ended.code, ended.out) == (0, f"The new identity is {after['identity']}.\n")
    assert before == first
    assert (after["made_by"], after["reason"]) == ("ana", "restored into staging")
    assert shell.run("identities", "renew", "--json").json["identity"] not in (before["identity"], after["identity"])
