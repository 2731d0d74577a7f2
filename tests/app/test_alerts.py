"""Alerts through the application: looking, setting policies, saying that something is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from detent import Context, Detent
from detent.alerts.policies import DEFAULTS
from detent.alerts.sink_options import sink_options
from detent.errors import InvalidInput, InvalidSetting, NotFound
from detent.testing.harness import Harness
from tests.alerts.receivers import Answer, http_receiver


@pytest.fixture
def app(database_url: str) -> Iterator[Detent]:
    with Detent(database_url) as app:
        yield app


def test_the_defaults_are_those_that_were_promised() -> None:
    """M2: with their thresholds."""
    thresholds = {name: (one.threshold, one.severity) for name, one in DEFAULTS.items() if one.measure != "event"}
    assert thresholds == {
        "success_rate_low": (0.97, "warning"),
        "success_rate_critical": (0.90, "critical"),
        "dead_letters_many": (50, "warning"),
        "dead_letters_critical": (100, "critical"),
        "throttled_burst": (3, "warning"),
        "breaker_open": (0, "warning"),
        "queue_stalled": (900.0, "warning"),
    }
    assert DEFAULTS["throttled_burst"].window_seconds == 300
    assert {name for name, one in DEFAULTS.items() if one.measure == "event"} >= {
        "consolidation_skipped",
        "consolidation_failed",
        "pipeline_failed",
        "mismatches_found",
        "invariant_violated",
    }


def test_something_of_your_own(app: Detent) -> None:
    """M2: said as often as you like, told once, acknowledged and resolved."""
    for _ in range(3):
        app.alerts.raise_("disk_full", "9 GB left", scope="host:db1", severity="critical", facts={"left": 9})
    (row,) = app.alerts.list(state="firing")
    assert (row.id, row.raised, row.facts) == ("disk_full/host:db1", 3, '{"left":9}')
    assert app.alerts.acknowledge("disk_full/host:db1", actor="ana", reason="on it").changed
    assert app.alerts.get("disk_full/host:db1").acknowledged_by == "ana"
    assert app.alerts.resolve("disk_full/host:db1", actor="ana", reason="cleaned").changed
    assert app.alerts.list(state="firing") == []
    with pytest.raises(NotFound):
        app.alerts.acknowledge("disk_full", actor="ana")


def test_policies_are_changed_made_and_taken_back(app: Detent) -> None:
    """M2: what is not said stays as it is."""
    changed = app.alerts.policies.set("dead_letters_many", threshold=20, actor="ana")
    assert (changed.threshold, changed.severity, changed.each) == (20, "warning", "whole")
    assert app.alerts.policies.set("dead_letters_many", enabled=False).threshold == 20
    mine = app.alerts.policies.set(
        "slow_reports", measure="oldest_ready", each="task", threshold=60, message="{scope}: {value}"
    )
    assert (mine.severity, mine.calm_seconds) == ("warning", 300.0)
    assert {one.name for one in app.alerts.policies.list()} == {*DEFAULTS, "slow_reports"}
    assert app.alerts.policies.remove("dead_letters_many", actor="ana").changed
    assert app.alerts.policies.remove("slow_reports", actor="ana").changed
    assert app.alerts.policies.list() == [*DEFAULTS.values()]


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("nothing_like_it", {"threshold": 3}),
    ("a/b", {"measure": "dead_letters", "threshold": 3}),
    ("mine", {"measure": "dead_letters"}),
    ("mine", {"measure": "weather", "threshold": 3}),
    ("mine", {"measure": "dead_letters", "threshold": 3, "each": "limit"}),
    ("mine", {"measure": "breaker_open", "threshold": 0}),
    ("mine", {"measure": "event", "threshold": 3}),
    ("mine", {"measure": "throttled", "threshold": 3}),
    ("dead_letters_many", {"threshold": -1}),
    ("dead_letters_many", {"threshold": 10_000}),
    ("dead_letters_many", {"threshold": float("nan")}),
    ("dead_letters_many", {"threshold": "many"}),
    ("success_rate_low", {"threshold": 97}),
    ("success_rate_low", {"window": 100_000}),
    ("dead_letters_many", {"severity": "bad"}),
    ("dead_letters_many", {"calm": -1}),
    ("dead_letters_many", {"count_min": 1.5}),
    ("dead_letters_many", {"message": "{0.__class__}"}),
    ("dead_letters_many", {"message": "{value.real}"}),
    ("dead_letters_many", {"message": "{value"}),
    ("dead_letters_many", {"message": ""}),
]


def test_what_cannot_be_a_policy(sqlite_url: str) -> None:
    """S3: a clear answer, and nothing is changed."""
    with Detent(sqlite_url) as app:
        for name, said in WRONG:
            with pytest.raises(InvalidInput):
                app.alerts.policies.set(name, **said)
        assert app.alerts.policies.list() == [*DEFAULTS.values()]


def test_what_cannot_be_an_alert(sqlite_url: str) -> None:
    """S3"""
    app = Detent(sqlite_url)
    for wrong in (
        lambda: app.alerts.raise_("a/b", "x"),
        lambda: app.alerts.raise_("", "x"),
        lambda: app.alerts.raise_("a", "x\0"),
        lambda: app.alerts.raise_("a", "x", severity="bad"),  # type: ignore[arg-type]
        lambda: app.alerts.raise_("a", "x", facts={"a": float("nan")}),
        lambda: app.alerts.raise_("a", "x", scope="s" * 3000),
        lambda: app.alerts.list(state="bad"),
        lambda: app.alerts.list(limit=0),
    ):
        with pytest.raises(InvalidInput):
            wrong()
    assert app.alerts.list() == []
    app.close()


def test_sinks_can_be_tried(sqlite_url: str) -> None:
    """M2: what came back, of each; an incident that is tried is over at once."""
    with http_receiver() as hook, http_receiver() as pager:
        settings: dict[str, Any] = {
            "alert_webhook_url": hook.url,
            "alert_pager_url": pager.url,
            "alert_pager_key": "R0",
        }
        with Detent(sqlite_url, **settings) as app:
            outcomes = app.alerts.test()
            assert {name: one.ok for name, one in outcomes.items()} == {"log": True, "webhook": True, "pager": True}
            assert [one["event_action"] for one in pager.posted] == ["trigger", "resolve"]
            assert "this is a test" in hook.texts[0]
            hook.answers = [Answer(404, "no_team")]
            assert app.alerts.test()["webhook"].said == "it answered 404: no_team"
            assert app.alerts.list() == []


@pytest.mark.parametrize("is_async", [False, True])
def test_an_alert_of_a_job_has_no_secret_field(store_url: str, is_async: bool) -> None:
    """S4: neither its message, facts and reason on record, nor what the sinks are sent."""
    card = "4111 1111"
    with http_receiver() as hook, closing(Harness(store_url)) as harness:
        app = harness.use(Detent(store_url, alert_webhook_url=hook.url))
        told: dict[str, Any] = {
            "message": f"card {card} was declined",
            "facts": {"card": "another", "said": [f"no {card}"], "shop": "north"},
            "reason": f"{card} again",
        }

        def pay(ctx: Context, card: str) -> None:
            app.alerts.raise_("declined", **told)

        async def pay_soon(ctx: Context, card: str) -> None:
            await app.aio.alerts.raise_("declined", **told)

        app.task(name="pay", secret=("card",))(pay_soon if is_async else pay)
        app.enqueue_named("pay", json.dumps({"card": card}))
        harness.work()
        app.alerts.judge()
        (alert,) = app.alerts.list()
        assert alert.message == "card [redacted] was declined"
        assert json.loads(alert.facts or "") == {"card": "[redacted]", "said": ["no [redacted]"], "shop": "north"}
        (line,) = app.record.search(entity="alert")
        assert line.reason == "[redacted] again"
        assert "card [redacted] was declined" in hook.texts[0]
        assert card not in str(hook.texts) + str(hook.posted)


@pytest.mark.parametrize(
    "settings",
    [
        {"alert_webhook_url": "hooks.example.org/secret"},
        {"alert_webhook_url": "ftp://hooks.example.org/secret"},
        {"alert_webhook_url": "https://hooks.example.org/se cret"},
        {"alert_webhook_url": "https://hooks.example.org:secret/"},
        {"alert_webhook_severity": "secret"},
        {"alert_mail_server": "mail.example.org", "alert_mail_recipients": "a@example.org"},
        {"alert_mail_server": "mail.example.org", "alert_mail_sender": "a@example.org"},
        {
            "alert_mail_server": "mail.example.org",
            "alert_mail_sender": "a@example.org",
            "alert_mail_recipients": "b@example.org",
            "alert_mail_security": "none",
            "alert_mail_password": "secret",
        },
        {"alert_mail_recipients": "a@example.org"},
        *(
            {
                "alert_mail_server": server,
                "alert_mail_sender": "a@example.org",
                "alert_mail_recipients": "b@example.org",
            }
            for server in ("mail.example.org:99999", "mail.example.org:smtp", ":25", "a b")
        ),
        {"alert_minute_max": 0},
    ],
)
def test_settings_that_cannot_be(sqlite_url: str, settings: dict[str, Any]) -> None:
    """M2, S4: said before a worker starts, and without what is secret in them."""
    with pytest.raises(InvalidSetting) as refused, Detent(sqlite_url, **settings) as app:
        sink_options(app.settings, "shop")
    assert "secret" not in str(refused.value)


def test_secrets_are_not_shown_with_the_settings(sqlite_url: str) -> None:
    """S4"""
    names = ("alert_webhook_url", "alert_pager_key", "alert_mail_password")
    secrets: dict[str, Any] = dict.fromkeys(names, "https://h/4711")
    with Detent(sqlite_url, **secrets) as app:
        assert "4711" not in repr(app.settings)
        assert "4711" not in repr(sink_options(app.settings, "shop"))
