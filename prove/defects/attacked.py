"""Defects that the figures about hostile input, killed servers and attackers must find."""

from __future__ import annotations

from prove.defects.defect import Defect, Edit
from prove.defects.proofs import figure

__all__ = ["ATTACKED"]

_KEYED = "the header Idempotency-Key is ignored, so a request that is repeated makes another job"

ATTACKED = (
    Defect(
        "ignored header",
        "HTTP",
        _KEYED,
        (Edit("http/api.py", '    given["key"] = key\n', "    pass\n"),),
        figure("http_kills", 20),
    ),
    Defect(
        "endless silence",
        "HTTP",
        "the list of silent jobs takes any limit, which one database refuses and the other does not",
        (Edit("app/jobs.py", "stalled_after, check_limit(limit)))", "stalled_after, limit))"),),
        figure("hostile_input", 90),
    ),
    Defect(
        "generous roles",
        "store",
        "every role on PostgreSQL may call every function",
        (
            Edit(
                "store/postgres/roles.py",
                "for name, least in of.items() if least in includes)",
                "for name, least in of.items() if least)",
            ),
        ),
        figure("security", 150),
    ),
    Defect(
        "revoked tokens",
        "HTTP",
        "a token that was revoked is accepted when it is looked up",
        (
            Edit(
                "http/callers.py",
                "caller = None if row is None or row.revoked_at is not None else _caller(row, token_hash)",
                "caller = None if row is None else _caller(row, token_hash)",
            ),
        ),
        figure("security", 150),
    ),
)
