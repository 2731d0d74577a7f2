"""Answers of the model and of a store, as they can be compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from detent.errors import DetentError
from detent.model.records import Commit, Reaped, TransitionRow
from prove.reference.model import Model

__all__ = ["answer_of", "comparable", "through_block"]


def answer_of(call: Callable[[Any], Any], side: Any) -> Any:
    """The answer, or what was raised instead of it."""
    try:
        return call(side)
    except DetentError as error:
        return ("raised", error)


def through_block(side: Any, item: Commit) -> None:
    """The same commit through the boundary: what is refused is raised there."""
    if isinstance(side, Model):
        answer = side.job_commit(item)
        if isinstance(answer, DetentError):
            raise answer
        return
    with side.commit_block(item.job_id, item.attempt) as tx:
        for intent in item.intents:
            tx.intend(intent)
        if item.result is not None:
            tx.result(item.result)


def comparable(answer: Any) -> Any:
    """An answer as it can be compared: errors by type and fields, ids without an order where none is promised."""
    match answer:
        case DetentError():
            fields = {f.name: comparable(getattr(answer, f.name)) for f in dataclasses.fields(answer)}  # type: ignore[arg-type]
            return type(answer).__name__, fields
        case Reaped():
            return answer.leases, sorted(answer.aborted), sorted(answer.recovered)
        case TransitionRow():
            return replace(answer, n=0)  # a number of the database's own; the order tells
        case list() | tuple():
            return [comparable(item) for item in answer]
        case _:
            return answer
