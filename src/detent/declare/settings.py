"""Every setting with its limit, and where it comes from: arguments, then `DETENT_*`, then a file.

The file is `detent.toml`, or the table `[tool.detent]` of `pyproject.toml`, in the working directory. A name that is
not a setting, or a value out of its range, is refused with `InvalidSetting`: a typing mistake must not be a default.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from detent.errors import InvalidSetting

__all__ = ["Settings", "load_settings"]

_KIB = 1024
_MIB = 1024 * 1024


def _limit(default: float, least: float, most: float, means: str) -> Any:
    return field(default=default, metadata={"least": least, "most": most, "means": means})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set; `…_max` are limits in bytes unless the name says otherwise."""

    database_url: str = field(
        default="sqlite:///detent.db", metadata={"means": "where the record is: sqlite:///path or postgresql://…"}
    )
    payload_max: int = _limit(_MIB, 64, 64 * _MIB, "bytes of a job's payload as JSON")
    result_max: int = _limit(_MIB, 64, 64 * _MIB, "bytes of a job's result as JSON")
    metadata_max: int = _limit(16 * _KIB, 64, _MIB, "bytes of a job's metadata as JSON")
    event_max: int = _limit(64 * _KIB, 64, _MIB, "bytes of an event's message, and of its payload as JSON")
    depth_max: int = _limit(64, 1, 256, "levels of nesting in any JSON value")
    key_max: int = _limit(512, 1, 512, "bytes of an idempotency key")
    name_max: int = _limit(200, 1, 200, "bytes of a task, queue, tenant, actor or worker name")
    reason_max: int = _limit(2000, 1, 16 * _KIB, "bytes of a reason")
    enqueue_many_max: int = _limit(100_000, 1, 1_000_000, "jobs in one call of enqueue_many")
    write_batch_max: int = _limit(1000, 1, 10_000, "items that the writer puts into one transaction")
    wait_poll: float = _limit(0.5, 0.001, 60, "longest pause in seconds between two looks while waiting for a job")
    key_wait: float = _limit(10, 0.1, 600, "seconds that a keyed enqueue waits for somebody else's open transaction")

    def __post_init__(self) -> None:
        for one in fields(self):
            _check(one.name, getattr(self, one.name), one.metadata)


def load_settings(
    arguments: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """The settings in force: arguments (None counts as not given) over environment over file over defaults."""
    chosen: dict[str, Any] = {}
    chosen.update(_from_file(directory or Path()))
    chosen.update(_from_environment(os.environ if environment is None else environment))
    chosen.update({name: value for name, value in (arguments or {}).items() if value is not None})
    unknown = sorted(set(chosen) - {one.name for one in fields(Settings)})
    if unknown:
        allowed = ", ".join(one.name for one in fields(Settings))
        raise InvalidSetting(unknown[0], "a name that is not a setting", allowed)
    return Settings(**chosen)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    for one in fields(Settings):
        text = environment.get(f"DETENT_{one.name.upper()}")
        if text is not None:
            chosen[one.name] = text if isinstance(one.default, str) else _number(one.name, text, type(one.default))
    return chosen


def _from_file(directory: Path) -> dict[str, Any]:
    for name, inner in (("detent.toml", ()), ("pyproject.toml", ("tool", "detent"))):
        path = directory / name
        if not path.is_file():
            continue
        try:
            table: Any = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidSetting(name, f"a file that is not TOML: {error}", "TOML") from None
        for key in inner:
            table = table.get(key, {})
        if table or not inner:
            return dict(table)
    return {}


def _number(name: str, text: str, kind: type[Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise InvalidSetting(name, repr(text), "a number") from None


def _check(name: str, value: Any, metadata: Mapping[str, Any]) -> None:
    if "least" not in metadata:
        if not isinstance(value, str) or not value:
            raise InvalidSetting(name, repr(value), metadata["means"])
        return
    least, most = metadata["least"], metadata["most"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidSetting(name, repr(value), f"a number from {least:g} to {most:g} ({metadata['means']})")
