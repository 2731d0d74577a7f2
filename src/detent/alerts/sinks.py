"""Sinks: where alerts are sent. The log is defined here; webhook, pager and mail have modules of their own."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from detent.alerts.message_text import headlines, highest_severity
from detent.model.alert_records import Notice, Route, Severity

__all__ = ["Fault", "LogSink", "Outcome", "Sink", "failed", "sent"]

Fault = Literal["sink", "message"]

log = logging.getLogger("detent.alerts")

_LEVELS: dict[Severity, int] = {"info": logging.INFO, "warning": logging.WARNING, "critical": logging.CRITICAL}
_LINES_MINUTE_MAX = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of sending a message. `said` is the answer. If it was not accepted, `fault` says whether the `sink`
    is the cause (unavailable, or it rejects our login) or the `message`, and `wait` is how many seconds to wait."""

    said: str
    fault: Fault | None = None
    wait: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the message was accepted."""
        return self.fault is None


def sent(said: str) -> Outcome:
    """Return the outcome of a message that was accepted."""
    return Outcome(said)


def failed(said: str, fault: Fault = "sink", wait: float = 0.0) -> Outcome:
    """Return the outcome of a message that was not accepted."""
    return Outcome(said, fault, wait)


class Sink(Protocol):
    """A place to which alerts are sent."""

    @property
    def route(self) -> Route:
        """Its name, and the severities that it receives."""
        ...

    @property
    def summarises(self) -> bool:
        """Whether many notices may be sent as one message. If not, each is sent by itself."""
        ...

    @property
    def minute_max(self) -> int:
        """Maximum number of messages per minute."""
        ...

    @property
    def at_once_max(self) -> int:
        """Maximum number of messages in a row. The last of them summarises all remaining notices."""
        ...

    def send(self, notices: Sequence[Notice]) -> Outcome:
        """Send these notices as one message. Network errors are returned, not raised; it takes a few time-outs at
        most."""
        ...


class LogSink:
    """A line in the worker's log, under the logger `detent.alerts`."""

    route = Route("log", ("info", "warning", "critical"))
    summarises = True
    minute_max = _LINES_MINUTE_MAX
    at_once_max = 1

    def send(self, notices: Sequence[Notice]) -> Outcome:
        """Log the notices as one line: at level info if all are resolved."""
        head, lines = headlines(notices)
        is_over = all(one.kind == "resolved" for one in notices)
        # Workers limit log lines by cause, and alerts that fire at the same moment have different causes.
        cause = {"cause": f"alert {notices[0].alert_id}"}
        level = logging.INFO if is_over else _LEVELS[highest_severity(notices)]
        log.log(level, "%s", "; ".join([head, *lines]), extra=cause)
        return sent("written")
