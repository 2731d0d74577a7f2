"""Carries what is to be told to the sinks: in order, each once as far as that can be known, and never as a storm.

A notice stays in the record until its sink has taken it. Where the sink is away, everything for it waits, and it is
asked ever more rarely; other sinks hear nothing of that. Whoever carries it may die between the sending and the note
that it was sent: then it is told once more, under the same message id or key.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from detent.alerts.mailing import MailSink
from detent.alerts.options import SinkOptions
from detent.alerts.posting import PagerSink, WebhookSink
from detent.alerts.sinks import LogSink, Outcome, Sink
from detent.model.alert_records import Delivery, Told
from detent.store.contract import Store

__all__ = ["deliver", "sinks_of"]

log = logging.getLogger("detent.alerts")

_BATCH = 500
_PAUSE_FIRST = 5.0
_PAUSE_LONGEST = 300.0
_TRIES_MAX = 300
"""With the pauses between them about a day: then it is given up, and stays on record as failed."""
_TRIES_OF_ITS_OWN = 3
"""For a message that the sink itself turns down: it must not keep those behind it waiting."""


def sinks_of(options: SinkOptions) -> list[Sink]:
    """The log, and whatever has an address."""
    found: list[Sink] = [LogSink()]
    if options.webhook_url:
        found.append(WebhookSink(options))
    if options.pager_key:
        found.append(PagerSink(options))
    if options.mail_server and options.mail_recipients:
        found.append(MailSink(options))
    return found


def deliver(store: Store, sink: Sink, timeout: float) -> int:
    """Tell a sink what it is to be told now; how many messages it took."""
    taken = 0
    # Nobody else may take what we are still sending.
    ours_for = 30.0 + 3 * timeout * (sink.minute_max + 1)
    while True:
        found, room = store.alert_take(sink.route.sink, sink.minute_max, _BATCH if sink.summarises else 1, ours_for)
        if not found:
            return taken
        alone = found if len(found) <= room else found[: room - 1]
        messages = [[one] for one in alone]
        if rest := found[len(alone) :]:
            messages.append(rest)
        for place, message in enumerate(messages):
            outcome = sink.send([one.notice for one in message])
            if not outcome.ok:
                behind = [one for later in messages[place + 1 :] for one in later]
                store.alert_told(sink.route.sink, _not_taken(sink, message, outcome, behind))
                return taken
            *others, last = message
            store.alert_told(
                sink.route.sink,
                [
                    *(Told(notice_n=one.notice.n, state="summarised") for one in others),
                    Told(notice_n=last.notice.n, state="sent"),
                ],
            )
            taken += 1


def _not_taken(sink: Sink, message: Sequence[Delivery], outcome: Outcome, behind: Sequence[Delivery]) -> list[Told]:
    """What becomes of a message that was not taken, and of those behind it: these wait as long as it does."""
    tries = message[0].tries
    limit = _TRIES_OF_ITS_OWN if outcome.fault == "message" else _TRIES_MAX
    pause = max(outcome.wait, min(_PAUSE_FIRST * 2 ** min(tries - 1, 20), _PAUSE_LONGEST))
    given_up = tries >= limit
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
    wait = 0.0 if given_up else pause
    return [*told, *(Told(notice_n=one.notice.n, state="pending", delay=wait) for one in behind)]
