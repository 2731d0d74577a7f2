"""The records of streams: text that a workflow shows to people while it is written."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

__all__ = ["STREAM", "StreamLine"]

STREAM = "stream"
"""The level of events that are text of a stream (`ctx.stream`)."""


class StreamLine(Struct, frozen=True, kw_only=True):
    """Text that a workflow wrote to a stream. A new `attempt` starts over: what an earlier one wrote may come again."""

    job_id: int
    seq: int
    stream: str
    attempt: int
    text: str
    at: datetime
