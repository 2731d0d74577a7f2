"""Delivering alerts to the sinks: in order, with a limited number of messages.

A notice stays in the database until its sink has accepted it. While a sink is unreachable, its notices wait and the
pauses between tries grow; other sinks are not affected. If the process dies after a message was sent and before that
was recorded, the message is sent again, with the same message id or key.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from detent.alerts.sink_options import SinkOptions
from detent.alerts.sinks import LogSink, Outcome, Sink
from detent.model.alert_records import Delivery, DeliveryOutcome
from detent.model.clock import Clock, SystemClock
from detent.store.contract import Store

__all__ = ["deliver", "sinks_of"]

log = logging.getLogger("detent.alerts")

_BATCH = 500
_SEND_WITHIN = 30.0
"""Seconds after taking the notices in which sending a message may begin."""
_PAUSE_FIRST = 5.0
_PAUSE_LONGEST = 300.0
_TRIES_MAX = 5
"""For a message that the sink refuses: it must not block those behind it for ever. While a sink is unreachable, tries
are unlimited."""


def sinks_of(options: SinkOptions) -> list[Sink]:
    """Return the log, and the sinks that have an address. Modules for the network are imported only if needed."""
    found: list[Sink] = [LogSink()]
    if options.webhook_url or options.pager_key:
        from detent.alerts.http_sinks import PagerSink, WebhookSink

        found += [WebhookSink(options)] if options.webhook_url else []
        found += [PagerSink(options)] if options.pager_key else []
    if options.mail_server and options.mail_recipients:
        from detent.alerts.mail_sink import MailSink

        found.append(MailSink(options))
    return found


def deliver(store: Store, sink: Sink, timeout: float, clock: Clock | None = None) -> int:
    """Send a sink the notices that are due, and return how many messages it accepted."""
    clock = clock or SystemClock()
    name, taken = sink.route.sink, 0
    while True:
        # This process may die, so it takes the notices for a limited time, with room for one slow message.
        found, room = store.alert_take(
            name, sink.minute_max, _BATCH if sink.summarises else 1, _SEND_WITHIN + 3 * timeout
        )
        if not found:
            return taken
        began_at = clock.monotonic()
        messages = _messages(found, min(room, sink.at_once_max))
        while messages:
            message = messages.pop(0)
            outcome = sink.send([one.notice for one in message])
            behind = [one for later in messages for one in later]
            if not outcome.ok:
                store.alert_outcomes_put(name, _refused(sink, message, outcome, behind))
                return taken
            *others, last = message
            told = [DeliveryOutcome(notice_n=one.notice.n, state="summarised") for one in others]
            store.alert_outcomes_put(name, [*told, DeliveryOutcome(notice_n=last.notice.n, state="sent")])
            taken += 1
            if behind and clock.monotonic() - began_at > _SEND_WITHIN:
                store.alert_outcomes_put(name, _returned(behind, 0.0))
                break


def _messages(found: list[Delivery], room: int) -> list[list[Delivery]]:
    """Return the notices as messages: one each, and a summary of the rest if there is not room for all."""
    if len(found) <= room:
        return [[one] for one in found]
    return [*([one] for one in found[: room - 1]), found[room - 1 :]]


def _refused(
    sink: Sink, message: Sequence[Delivery], outcome: Outcome, behind: Sequence[Delivery]
) -> list[DeliveryOutcome]:
    """Return the new state of a message that was not accepted, and of those behind it, which wait as long as it
    does."""
    tries = message[0].tries
    pause = max(outcome.wait, min(_PAUSE_FIRST * 2 ** min(tries - 1, 20), _PAUSE_LONGEST))
    given_up = outcome.fault == "message" and tries >= _TRIES_MAX
    log.warning(
        "Alert sink %s did not accept %s: %s; %s.",
        sink.route.sink,
        message[0].notice.alert_id if len(message) == 1 else f"a summary of {len(message)}",
        outcome.said,
        "giving up on it" if given_up else f"trying again in {pause:g} s",
    )
    told = [
        DeliveryOutcome(
            notice_n=one.notice.n, state="failed" if given_up else "pending", error=outcome.said, delay=pause
        )
        for one in message
    ]
    return [*told, *_returned(behind, 0.0 if given_up else pause)]


def _returned(deliveries: Sequence[Delivery], pause: float) -> list[DeliveryOutcome]:
    return [DeliveryOutcome(notice_n=one.notice.n, state="pending", delay=pause, tried=False) for one in deliveries]
