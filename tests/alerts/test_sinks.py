"""Sinks against real receivers: what they send, and what they make of the answers."""

from __future__ import annotations

import logging
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from detent.alerts.http_sinks import PagerSink, WebhookSink
from detent.alerts.mail_sink import MailSink
from detent.alerts.sink_options import SinkOptions, host_and_port
from detent.alerts.sinks import LogSink
from detent.model.alert_records import Notice
from tests.alerts.receivers import Answer, MailReceiver, http_receiver, mail_receiver, self_signed

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


def notice(**overrides: Any) -> Notice:
    fields: dict[str, Any] = {
        "n": 1,
        "policy": "dead_letters_many",
        "scope": "queue:mail",
        "episode": 3,
        "kind": "firing",
        "severity": "warning",
        "message": "51 jobs are quarantined",
        "facts": '{"value":51,"threshold":50}',
        "value": 51.0,
        "since": AT,
        "at": AT,
    }
    return Notice(**fields | overrides)


RESOLVED = notice(n=2, kind="resolved", message="it is well", at=AT + timedelta(minutes=12))


class TestWebhook:
    def test_a_message_as_slack_takes_it(self) -> None:
        """M2: text for those who read no more, colour and fields for the others."""
        with http_receiver() as receiver:
            sink = WebhookSink(SinkOptions(webhook_url=f"{receiver.url}/services/T0/B0", source="shop"))
            assert sink.send([notice()]).ok
            assert sink.send([RESOLVED]).ok
        first, second = receiver.posted
        assert first["text"] == "WARNING: dead_letters_many/queue:mail: 51 jobs are quarantined"
        (attachment,) = first["attachments"]
        assert (attachment["footer"], attachment["ts"]) == ("shop", int(AT.timestamp()))
        assert {one["title"]: one["value"] for one in attachment["fields"]} == {"value": "51", "threshold": "50"}
        assert second["text"] == "RESOLVED after 12 min: dead_letters_many/queue:mail: it is well"
        assert second["attachments"][0]["color"] != attachment["color"]
        assert receiver.paths == ["/services/T0/B0"] * 2
        assert receiver.headers[0]["Content-Type"].startswith("application/json")

    def test_what_people_called_things_calls_nobody(self) -> None:
        """S3: a queue called <!channel> is a queue, and a message is one line."""
        with http_receiver() as receiver:
            sink = WebhookSink(SinkOptions(webhook_url=receiver.url))
            sink.send([notice(scope="queue:<!channel>", message="a\nb & <@U1>", facts='{"<!here>":"<!here>"}')])
        text = str(receiver.posted)
        assert "<!" not in text
        assert "<@" not in text
        assert "\n" not in receiver.posted[0]["text"]

    def test_many_in_one_message(self) -> None:
        """M2: a storm is told by its size, and its first parts by name."""
        many = [notice(n=n, scope=f"task:{n}") for n in range(24)] + [RESOLVED]
        with http_receiver() as receiver:
            assert WebhookSink(SinkOptions(webhook_url=receiver.url)).send(many).ok
        (posted,) = receiver.posted
        assert posted["text"] == "25 more alerts: 24 firing, 1 resolved"
        lines = posted["attachments"][0]["text"].splitlines()
        assert (len(lines), lines[-1]) == (21, "and 5 more")

    @pytest.mark.parametrize(
        ("status", "fault"), [(400, "message"), (403, "sink"), (404, "sink"), (429, "sink"), (500, "sink")]
    )
    def test_what_is_not_taken_says_why(self, status: int, fault: str) -> None:
        """M2: whether this message is bad, or the sink is away."""
        with http_receiver() as receiver:
            receiver.answers = [Answer(status, "no_such\nhook", {"Retry-After": "7"})]
            outcome = WebhookSink(SinkOptions(webhook_url=receiver.url)).send([notice()])
        assert (outcome.ok, outcome.fault, outcome.wait) == (False, fault, 7.0)
        assert outcome.said == f"it answered {status}: no_such hook"

    def test_it_goes_nowhere_else(self) -> None:
        """S4: what is sent to one is not for another."""
        with http_receiver() as elsewhere, http_receiver() as receiver:
            receiver.answers = [Answer(307, "", {"Location": elsewhere.url})]
            assert WebhookSink(SinkOptions(webhook_url=receiver.url)).send([notice()]).said == "it answered 307"
            assert elsewhere.posted == []

    def test_nobody_there_and_nobody_who_answers(self) -> None:
        """M2: within its time-out."""
        with http_receiver() as receiver:
            url = receiver.url
        outcome = WebhookSink(SinkOptions(webhook_url=url)).send([notice()])
        assert outcome.fault == "sink"
        assert outcome.said.startswith("no answer: ")
        with http_receiver() as receiver:
            receiver.hold = threading.Event()
            outcome = WebhookSink(SinkOptions(webhook_url=receiver.url, timeout=0.2)).send([notice()])
            receiver.hold.set()
        assert (outcome.fault, outcome.said) == ("sink", "no answer: timed out")

    def test_secrets_are_never_said(self) -> None:
        """S4: also where the other side repeats them."""
        with http_receiver() as receiver:
            options = SinkOptions(webhook_url=f"{receiver.url}/services/T0/secret", pager_key="key-of-the-pager")
            receiver.answers = [Answer(404, f"{options.webhook_url} and /services/T0/secret and key-of-the-pager")]
            said = WebhookSink(options).send([notice()]).said
        assert said == "it answered 404: *** and /*** and ***"
        assert "secret" not in repr(options)

    def test_a_certificate_that_nobody_knows_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """S4: TLS is checked, and works where the certificate is known."""
        certificate, key = self_signed(tmp_path)
        with http_receiver((certificate, key)) as receiver:
            sink = WebhookSink(SinkOptions(webhook_url=receiver.url))
            assert "certificate verify failed" in sink.send([notice()]).said
            assert receiver.posted == []
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            assert sink.send([notice()]).ok


class TestPager:
    def test_trigger_and_resolve_are_of_one_incident(self) -> None:
        """M2: as PagerDuty's Events API v2 has it."""
        with http_receiver() as receiver:
            receiver.answers = [Answer(202), Answer(202), Answer(202)]
            sink = PagerSink(SinkOptions(pager_url=f"{receiver.url}/v2/enqueue", pager_key="R0", source="shop"))
            for one in (notice(severity="critical"), notice(kind="still"), RESOLVED):
                assert sink.send([one]).ok
        trigger, again, resolve = receiver.posted
        assert trigger["routing_key"] == "R0"
        assert [one["event_action"] for one in receiver.posted] == ["trigger", "trigger", "resolve"]
        assert {one["dedup_key"] for one in receiver.posted} == {"shop/dead_letters_many/queue:mail/3"}
        payload = trigger["payload"]
        assert (payload["severity"], payload["source"], payload["component"]) == ("critical", "shop", "queue:mail")
        assert payload["summary"].startswith("CRITICAL: dead_letters_many/queue:mail: 51")
        assert payload["custom_details"] == {"value": "51", "threshold": "50"}
        assert payload["timestamp"] == AT.isoformat()
        assert "payload" in again
        assert "payload" not in resolve

    def test_long_names_keep_to_its_bounds(self) -> None:
        with http_receiver() as receiver:
            sink = PagerSink(SinkOptions(pager_url=receiver.url, pager_key="R0"))
            for one in (notice(scope="s" * 2000, message="m" * 2000), notice(scope="s" * 1999 + "t")):
                assert sink.send([one]).ok
        first, second = receiver.posted
        assert len(first["payload"]["summary"]) == 1024
        assert max(len(one["dedup_key"]) for one in (first, second)) <= 255
        assert first["dedup_key"] != second["dedup_key"]


def mail_options(receiver: MailReceiver, **overrides: Any) -> SinkOptions:
    fields: dict[str, Any] = {
        "source": "shop",
        "mail_server": receiver.address,
        "mail_security": "none",
        "mail_sender": "Detent <detent@example.org>",
        "mail_recipients": ("ana@example.org", "bob@example.org"),
    }
    return SinkOptions(**fields | overrides)


class TestMail:
    def test_a_mail_to_everybody(self) -> None:
        """M2: with a subject that says it all, and an id that is the same if it is sent twice."""
        with mail_receiver(MailReceiver()) as receiver:
            sink = MailSink(mail_options(receiver))
            for one in (
                notice(message="51 quarantäned\nSubject: x"),
                notice(message="51 quarantäned\nSubject: x"),
                RESOLVED,
            ):
                assert sink.send([one]).said == "accepted for 2"
        first, again, resolved = receiver.mails
        assert receiver.envelopes[0] == ("detent@example.org", ["ana@example.org", "bob@example.org"])
        assert first["Subject"].startswith("[shop] WARNING: dead_letters_many/queue:mail: 51 quarantäned")
        assert first["To"] == "ana@example.org, bob@example.org"
        assert first["Auto-Submitted"] == "auto-generated"
        assert "threshold: 50" in first.get_content()
        assert first["Message-ID"] == again["Message-ID"] != resolved["Message-ID"]
        assert resolved["Subject"].strip().startswith("[shop] RESOLVED after 12 min")

    def test_after_starttls_with_a_login(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """M2, S4: the password is said only to whom the certificate is known of, and never repeated."""
        certificate, key = self_signed(tmp_path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        with mail_receiver(MailReceiver(login=("detent", "pass-word"), tls=context)) as receiver:
            options = mail_options(receiver, mail_security="starttls", mail_user="detent", mail_password="pass-word")
            outcome = MailSink(options).send([notice()])
            assert (outcome.fault, "certificate verify failed" in outcome.said) == ("sink", True)
            monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
            assert MailSink(options).send([notice()]).ok
            assert receiver.secured == [True]
            wrong = mail_options(receiver, mail_security="starttls", mail_user="detent", mail_password="other-word")
            outcome = MailSink(wrong).send([notice()])
        assert (outcome.fault, outcome.said) == ("sink", "it answered 535: *** is not your password")

    def test_a_server_without_starttls_gets_nothing(self) -> None:
        """S4: it is not said in the clear instead."""
        with mail_receiver(MailReceiver()) as receiver:
            outcome = MailSink(mail_options(receiver, mail_security="starttls")).send([notice()])
            assert (outcome.fault, receiver.mails) == ("sink", [])

    def test_some_mailboxes_or_none(self) -> None:
        """M2: one that is gone keeps nobody else from hearing of it."""
        with mail_receiver(MailReceiver(refuses={"bob@example.org"})) as receiver:
            outcome = MailSink(mail_options(receiver)).send([notice()])
            assert outcome.said == "accepted for 1, but not for bob@example.org: 550 nobody of that name"
            receiver.refuses.add("ana@example.org")
            outcome = MailSink(mail_options(receiver)).send([notice()])
            assert (outcome.fault, len(receiver.mails)) == ("message", 1)

    @pytest.mark.parametrize(("says", "fault"), [("451 later", "sink"), ("554 not like this", "message")])
    def test_what_it_says_to_the_mail_itself(self, says: str, fault: str) -> None:
        with mail_receiver(MailReceiver(says_to_data=says)) as receiver:
            outcome = MailSink(mail_options(receiver)).send([notice()])
        assert (outcome.fault, outcome.said) == (fault, f"it answered {says[:3]}: {says[4:]}")

    def test_nobody_there(self) -> None:
        with mail_receiver(MailReceiver()) as receiver:
            options = mail_options(receiver)
        assert MailSink(options).send([notice()]).said.startswith("no answer: ")


@pytest.mark.parametrize(
    ("server", "found"),
    [
        ("mail", ("mail", 587)),
        ("mail:25", ("mail", 25)),
        ("::1", ("::1", 587)),
        ("[::1]", ("::1", 587)),
        ("[::1]:25", ("::1", 25)),
    ],
)
def test_where_the_mail_server_is(server: str, found: tuple[str, int]) -> None:
    assert host_and_port(server, 587) == found


def test_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """M2: as grave as it is, and what is over is information."""
    with caplog.at_level(logging.INFO, "detent.alerts"):
        for one in (notice(severity="critical"), notice(), RESOLVED):
            assert LogSink().send([one]).ok
        assert LogSink().send([notice(), RESOLVED]).ok
    assert [record.levelname for record in caplog.records] == ["CRITICAL", "WARNING", "INFO", "WARNING"]
    assert caplog.records[0].getMessage() == "CRITICAL: dead_letters_many/queue:mail: 51 jobs are quarantined"
