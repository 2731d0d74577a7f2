"""Defects in how workers get over an outage of their database."""

from __future__ import annotations

from prove.defects.defect import Defect, Edit
from prove.defects.proofs import restarts

__all__ = ["RESTARTS"]

RESTARTS = (
    Defect(
        "results dropped in an outage",
        "worker",
        "a result that cannot be written because the database is away is not written later",
        (Edit("worker/child/flusher.py", "if isinstance(error, OUTAGES):", "if False:"),),
        restarts(4),
    ),
)
