"""Sinks over HTTP: a webhook in the format of Slack, and events for PagerDuty (Events API v2)."""

from __future__ import annotations

import hashlib
import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from email.message import Message
from typing import IO, Any

import msgspec

from detent.alerts.message_text import facts_of, headline, headlines, highest_severity
from detent.alerts.sink_options import SinkOptions, severities_from
from detent.alerts.sinks import Fault, Outcome, failed, sent
from detent.model.alert_records import Notice, Route, Severity

__all__ = ["PagerSink", "WebhookSink", "post"]

_ANSWER_MAX = 300
_MESSAGE_REFUSED = (400, 413, 422)
_WAIT_MAX = 3600.0
_COLOURS: dict[Severity, str] = {"info": "#4a90d9", "warning": "#e6a23c", "critical": "#c0392b"}
_WELL = "#2e8b57"
_SUMMARY_MAX = 1024
_KEY_MAX = 255


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects: an alert may hold secrets, and goes to the configured address only."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


def post(url: str, body: Any, options: SinkOptions) -> Outcome:
    """POST a JSON value, with a checked certificate if the URL is https, and return the outcome."""
    tls = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    opener = urllib.request.build_opener(tls, _NoRedirects)
    headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "detent"}
    request = urllib.request.Request(url, msgspec.json.encode(body), headers, method="POST")
    try:
        with opener.open(request, timeout=options.timeout) as answer:
            return sent(_said(options, answer.status, answer.read(_ANSWER_MAX)))
    except urllib.error.HTTPError as error:
        with error:
            said = _said(options, error.code, _read(error))
        fault: Fault = "message" if error.code in _MESSAGE_REFUSED else "sink"
        return failed(said, fault, _wait(error.headers.get("Retry-After")))
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return failed(options.redacted(f"no answer: {reason or type(reason).__name__}"))


def _read(error: urllib.error.HTTPError) -> bytes:
    try:
        return error.read(_ANSWER_MAX)
    except (OSError, http.client.HTTPException):
        return b""


def _said(options: SinkOptions, status: int, body: bytes) -> str:
    text = " ".join(body.decode("utf-8", "replace").split())
    return options.redacted(f"it answered {status}" + (f": {text}" if text else ""))


def _wait(retry_after: str | None) -> float:
    text = (retry_after or "").strip()
    return min(float(text), _WAIT_MAX) if text.isdigit() else 0.0


class WebhookSink:
    """Sends one JSON object per message in the format of Slack: `text`, and `attachments` with colour and fields."""

    summarises = True

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self.route = Route("webhook", severities_from(options.webhook_severity))
        self.minute_max = self.at_once_max = options.minute_max

    def send(self, notices: Sequence[Notice]) -> Outcome:
        """Send the notices. Text is escaped, so `<!channel>` in an error message notifies no one."""
        head, lines = headlines(notices)
        is_over = all(one.kind == "resolved" for one in notices)
        attachment: dict[str, Any] = {
            "color": _WELL if is_over else _COLOURS[highest_severity(notices)],
            "fallback": _plain(head),
            "footer": _plain(self._options.source),
            "ts": int(notices[-1].at.timestamp()),
        }
        if lines:
            attachment["text"] = _plain("\n".join(lines))
        else:
            fields = facts_of(notices[0]).items()
            attachment["fields"] = [{"title": _plain(k), "value": _plain(v), "short": True} for k, v in fields]
        body = {"text": _plain(head), "attachments": [attachment]}
        return post(self._options.webhook_url, body, self._options)


def _plain(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class PagerSink:
    """Sends one event per notice: `trigger`, and later `resolve` with the same `dedup_key`, one per episode."""

    summarises = False

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self.route = Route("pager", severities_from(options.pager_severity))
        self.minute_max = self.at_once_max = options.minute_max

    def send(self, notices: Sequence[Notice]) -> Outcome:
        """Send one notice: alerts are never summarised for a pager."""
        (notice,) = notices
        body: dict[str, Any] = {
            "routing_key": self._options.pager_key,
            "event_action": "resolve" if notice.kind == "resolved" else "trigger",
            "dedup_key": _dedup_key(self._options.source, notice),
        }
        if notice.kind != "resolved":
            body["payload"] = {
                "summary": headline(notice)[:_SUMMARY_MAX],
                "source": self._options.source,
                "severity": notice.severity,
                "timestamp": notice.at.isoformat(),
                "component": notice.scope or "all",
                "class": notice.policy,
                "custom_details": facts_of(notice),
            }
        return post(self._options.pager_url, body, self._options)


def _dedup_key(source: str, notice: Notice) -> str:
    key = f"{source}/{notice.alert_id}/{notice.episode}"
    if len(key.encode()) <= _KEY_MAX:
        return key
    return f"detent/{hashlib.sha256(key.encode()).hexdigest()}"
