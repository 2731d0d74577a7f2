"""Errors travel: through pickle, as process pools send them, and through copy."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from typing import Any

import pytest

from detent.errors import TABLE, DetentError, InvalidSetting

VALUES: dict[str, Any] = {
    "int": 7,
    "float": 0.5,
    "bool": True,
    "str": "text",
    "str | None": None,
    "Sequence[str]": ("a", "b"),
    "datetime": datetime(2026, 1, 1, tzinfo=UTC),
}


def built(kind: type[DetentError]) -> DetentError:
    """An error with all its fields given by keyword."""
    anything: Any = kind
    if not dataclasses.is_dataclass(anything):
        return kind("it failed")
    return kind(**{field.name: VALUES.get(str(field.type), "text") for field in dataclasses.fields(anything)})


def raising(kind: type[DetentError]) -> None:
    raise built(kind)


@pytest.mark.parametrize("kind", list(TABLE), ids=[kind.__name__ for kind in TABLE])
def test_an_error_built_by_keyword_can_be_pickled_and_copied(kind: type[DetentError]) -> None:
    error = built(kind)
    error.add_note("while testing")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(twin) is kind
        assert (str(twin), twin.args) == (str(error), error.args)
        assert vars(twin) == vars(error)


def test_a_process_pool_gives_the_error_itself() -> None:
    """Without pickling by fields the pool breaks, and the caller hears `BrokenProcessPool` or a TypeError."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        error = pool.submit(raising, InvalidSetting).exception()
    assert type(error) is InvalidSetting
    assert vars(error)["field"] == "text"
