"""`detent alerts`, and workers that send notifications."""

from __future__ import annotations

import signal

from detent import Detent
from tests.alerts.receivers import Answer, http_receiver
from tests.cli.shell import SECONDS_MAX, Shell, World


def test_alerts_are_listed_acknowledged_and_resolved(sqlite_shell: Shell, sqlite_url: str) -> None:
    """M2, U2: with severity, actor, reason and notifications."""
    shell = sqlite_shell
    with Detent(sqlite_url) as app:
        app.alerts.raise_("disk_full", "9 GB left\x1b[31m", scope="host:db1", severity="critical", facts={"left": 9})
    ended = shell.run("alerts", "list", "--state", "resolved")
    assert (ended.code, ended.out, ended.err) == (0, "", "no alerts are resolved\n")
    head, row = shell.run("alerts", "list", "--state", "firing").rows
    assert head[:3] == ["ALERT", "STATE", "SEVERITY"]
    assert row[:3] == ["disk_full/host:db1", "firing", "critical"]
    ended = shell.run("alerts", "acknowledge", "disk_full/host:db1", "--actor", "ana", "--reason", "on it")
    assert (ended.code, ended.out) == (0, "alert disk_full/host:db1: acknowledged\n")
    shown = shell.run("alerts", "get", "disk_full/host:db1")
    assert "\x1b" not in shown.out
    assert "no notification has been sent yet" in shown.err
    found = shell.run("alerts", "get", "disk_full/host:db1", "--json").json
    assert (found["acknowledged_by"], found["deliveries"]) == ("ana", [])
    assert shell.run("alerts", "acknowledge", "nothing").code == 3
    ended = shell.run("alerts", "resolve", "disk_full/host:db1", "--actor", "ana", "--reason", "cleaned up")
    assert (ended.code, ended.out) == (0, "alert disk_full/host:db1: resolved\n")
    assert shell.run("alerts", "resolve", "disk_full/host:db1").out.endswith("resolved (unchanged)\n")
    assert shell.run("alerts", "resolve", "nothing").code == 3
    with Detent(sqlite_url) as app:
        line = app.store.transitions("alert", "disk_full/host:db1")[-1]
    assert (line.to_state, line.actor, line.reason) == ("resolved", "ana", "cleaned up")


def test_policies_are_set_and_removed(sqlite_shell: Shell) -> None:
    """M2, U2: without any code."""
    ended = sqlite_shell.run("alerts", "policies", "set", "dead_letters_many", "--threshold", 20, "--calm", "1m")
    assert (ended.code, ended.out) == (0, "policy dead_letters_many: warning when dead_letters > 20\n")
    found = {one["name"]: one for one in sqlite_shell.run("alerts", "policies", "list", "--json").json}
    assert (found["dead_letters_many"]["threshold"], found["dead_letters_many"]["default"]) == (20.0, False)
    assert (found["success_rate_low"]["threshold"], found["success_rate_low"]["default"]) == (0.97, True)
    assert sqlite_shell.run("alerts", "policies", "set", "dead_letters_many", "--off").out.endswith(", off\n")
    assert sqlite_shell.run("alerts", "policies", "remove", "dead_letters_many").out == (
        "policy dead_letters_many: default\n"
    )
    assert sqlite_shell.run("alerts", "policies", "remove", "nothing").code == 3
    assert "97 %" in sqlite_shell.run("alerts", "policies", "list").out
    assert sqlite_shell.run("alerts", "policies", "set", "dead_letters_many").code == 2
    refused = sqlite_shell.run("alerts", "policies", "set", "success_rate_low", "--threshold", 97)
    assert refused.code == 2
    assert "from 0 to 1" in refused.err


def test_sinks_are_tested(sqlite_shell: Shell) -> None:
    """M2, S4: the answer of each sink is shown; a failure gives exit code 1, and no secret is printed."""
    with http_receiver() as hook:
        sqlite_shell.environment["DETENT_ALERT_WEBHOOK_URL"] = f"{hook.url}/services/4711"
        ended = sqlite_shell.run("alerts", "test")
        assert (ended.code, len(hook.posted)) == (0, 1)
        hook.answers = [Answer(404, "no hook /services/4711")]
        ended = sqlite_shell.run("alerts", "test", "--json")
        assert ended.code == 1
        assert [(one["sink"], one["ok"]) for one in ended.json] == [("log", True), ("webhook", False)]
        assert "4711" not in ended.out + ended.err


def test_workers_notify_once(shell: Shell, world: World) -> None:
    """M2: two real workers report a dead job once, and once that it is resolved; the secret is on no command line."""
    with http_receiver() as hook:
        shell.environment["DETENT_ALERT_WEBHOOK_URL"] = f"{hook.url}/services/4711"
        world.app.alerts.policies.set("dead_letters_many", threshold=0, calm=0)
        running = [shell.start("worker", "shop:app", "--lease", "1.5s", "--slots", "1") for _ in range(2)]
        try:
            job = shell.run("enqueue", "fail", "--app", "shop:app", "--json").json["id"]
            hook.wait_for(1)
            shell.run("jobs", "discard", job)
            hook.wait_for(2)
            for process in running:
                with open(f"/proc/{process.pid}/cmdline", encoding="utf-8") as line:
                    assert "4711" not in line.read()
        finally:
            for process in running:
                process.send_signal(signal.SIGTERM)
            said = [process.communicate(timeout=SECONDS_MAX)[1] for process in running]
        assert [text.split()[0] for text in hook.texts] == ["WARNING:", "RESOLVED"]
        assert "4711" not in "".join(said)
        assert sum("detent.alerts" in one or "1 jobs are quarantined" in one for one in said) >= 1
