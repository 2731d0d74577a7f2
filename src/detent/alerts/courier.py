"""Carries what is to be told to the sinks: in order, each once as far as that can be known, and never as a storm.

A notice stays in the record until its sink has taken it. Where the sink is away, everything for it waits, and it is
asked ever more rarely; other sinks hear nothing of that. Whoever carries it may die between the sending and the note
that it was sent: then it is told once more, under the same message id or key.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from detent.alerts.options import SinkOptions
from detent.alerts.sinks import LogSink, Outcome, Sink
from detent.model.alert_records import Delivery, Told
from detent.model.clock import Clock, SystemClock
from detent.store.contract import Store

__all__ = ["deliver", "sinks_of"]

log = logging.getLogger("detent.alerts")

_BATCH = 500
_BEGIN_WITHIN = 30.0
"""Seconds after it was taken in which a message is begun."""
_PAUSE_FIRST = 5.0
_PAUSE_LONGEST = 300.0
_TRIES_MAX = 5
"""For a message that the sink itself turns down: it must not keep those behind it waiting for ever. For a sink that is
away there is no such bound."""


def sinks_of(options: SinkOptions) -> list[Sink]:
    """The log, and whatever has an address. What speaks to the world is imported only where there is one."""
    found: list[Sink] = [LogSink()]
    if options.webhook_url or options.pager_key:
        from detent.alerts.posting import PagerSink, WebhookSink

        found += [WebhookSink(options)] if options.webhook_url else []
        found += [PagerSink(options)] if options.pager_key else []
    if options.mail_server and options.mail_recipients:
        from detent.alerts.mailing import MailSink

        found.append(MailSink(options))
    return found


def deliver(store: Store, sink: Sink, timeout: float, clock: Clock | None = None) -> int:
    """Tell a sink what it is to be told now; how many messages it took."""
    clock = clock or SystemClock()
    name, taken = sink.route.sink, 0
    while True:
        # Whoever takes it may die: so it is ours for one slow message beyond the time in which we begin any.
        found, room = store.alert_take(
            name, sink.minute_max, _BATCH if sink.summarises else 1, _BEGIN_WITHIN + 3 * timeout
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
                store.alert_told(name, _not_taken(sink, message, outcome, behind))
                return taken
            *others, last = message
            told = [Told(notice_n=one.notice.n, state="summarised") for one in others]
            store.alert_told(name, [*told, Told(notice_n=last.notice.n, state="sent")])
            taken += 1
            if behind and clock.monotonic() - began_at > _BEGIN_WITHIN:
                store.alert_told(name, _given_back(behind, 0.0))
                break


def _messages(found: list[Delivery], room: int) -> list[list[Delivery]]:
    """Each on its own; where there is not room for all, the last message is about all that are left."""
    if len(found) <= room:
        return [[one] for one in found]
    return [*([one] for one in found[: room - 1]), found[room - 1 :]]


def _not_taken(sink: Sink, message: Sequence[Delivery], outcome: Outcome, behind: Sequence[Delivery]) -> list[Told]:
    """What becomes of a message that was not taken, and of those behind it: these wait as long as it does."""
    tries = message[0].tries
    pause = max(outcome.wait, min(_PAUSE_FIRST * 2 ** min(tries - 1, 20), _PAUSE_LONGEST))
    given_up = outcome.fault == "message" and tries >= _TRIES_MAX
    log.warning(
        "alert sink %s did not take %s: %s; %s",
        sink.route.sink,
        message[0].notice.alert_id if len(message) == 1 else f"a summary of {len(message)}",
        outcome.said,
        "it is given up" if given_up else f"tried again in {pause:g} s",
    )
    told = [
        Told(notice_n=one.notice.n, state="failed" if given_up else "pending", error=outcome.said, delay=pause)
        for one in message
    ]
    return [*told, *_given_back(behind, 0.0 if given_up else pause)]


def _given_back(deliveries: Sequence[Delivery], pause: float) -> list[Told]:
    return [Told(notice_n=one.notice.n, state="pending", delay=pause, tried=False) for one in deliveries]
