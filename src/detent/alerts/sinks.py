"""Who hears of alerts: the log, a webhook, a pager, mailboxes. Each sends a message and says what came back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from detent.alerts.words import gravest, headlines
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
    """It was taken."""
    return Outcome(said)


def failed(said: str, fault: Fault = "sink", wait: float = 0.0) -> Outcome:
    """It was not taken."""
    return Outcome(said, fault, wait)


class Sink(Protocol):
    """One way to tell people."""

    @property
    def route(self) -> Route:
        """Its name, and what it hears of."""
        ...

    @property
    def summarises(self) -> bool:
        """Whether many notices may go as one message; where not, each goes on its own, in its own time."""
        ...

    @property
    def minute_max(self) -> int:
        """How many messages it bears in a minute."""
        ...

    @property
    def at_once_max(self) -> int:
        """How many messages it is sent one after the other; the last is about all notices that are left."""
        ...

    def send(self, notices: Sequence[Notice]) -> Outcome:
        """Tell these in one message. Never raises what the world does; takes a few time-outs at most."""
        ...


class LogSink:
    """A line in the worker's log, under the logger `detent.alerts`."""

    route = Route("log", ("info", "warning", "critical"))
    summarises = True
    minute_max = _LINES_MINUTE_MAX
    at_once_max = 1

    def send(self, notices: Sequence[Notice]) -> Outcome:
        """What is resolved is only information."""
        head, lines = headlines(notices)
        is_over = all(one.kind == "resolved" for one in notices)
        # Workers limit lines by cause: alerts that fire at the same moment are different causes.
        cause = {"cause": f"alert {notices[0].alert_id}"}
        level = logging.INFO if is_over else _LEVELS[gravest(notices)]
        log.log(level, "%s", "; ".join([head, *lines]), extra=cause)
        return sent("written")
