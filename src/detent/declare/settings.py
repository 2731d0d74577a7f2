"""Every setting with its limit, and where it comes from: arguments, then `DETENT_*`, then a file.

The file is `detent.toml`, or the table `[tool.detent]` of `pyproject.toml`, in the working directory. A name that is
not a setting, or a value out of its range, is refused with `InvalidSetting`: a typing mistake must not be a default.
In the environment only what is nearly a setting's name is refused; other programs put variables of this prefix there
too (an orchestrator, for a service called detent).
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from detent.errors import InvalidSetting

__all__ = ["Settings", "inherited_environment", "load_settings"]

_KIB = 1024
_MIB = 1024 * 1024
_PREFIX = "DETENT_"
_NEARLY = 0.85


def _limit(default: float, least: float, most: float, means: str) -> Any:
    return field(default=default, metadata={"least": least, "most": most, "means": means})


def _text(default: str, means: str, *, secret: bool = False, one_of: Sequence[str] = ()) -> Any:
    """A text, which may be empty, or is one of a few. What may be secret is never shown."""
    return field(default=default, repr=not secret, metadata={"means": means, "optional": True, "one_of": one_of})


_SEVERITIES = ("info", "warning", "critical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What can be set; `…_max` are limits in bytes unless the name says otherwise."""

    database_url: str = field(
        default="sqlite:///detent.db", metadata={"means": "where the record is: sqlite:///path or postgresql://…"}
    )
    actor: str = field(
        default="client", metadata={"means": "who acts, for the record, unless a call or acting_as() names somebody"}
    )
    payload_max: int = _limit(_MIB, 64, 64 * _MIB, "bytes of a job's payload as JSON")
    result_max: int = _limit(_MIB, 64, 64 * _MIB, "bytes of a job's result as JSON")
    metadata_max: int = _limit(16 * _KIB, 64, _MIB, "bytes of a job's metadata as JSON")
    event_max: int = _limit(64 * _KIB, 64, _MIB, "bytes of an event's message, and of its payload as JSON")
    depth_max: int = _limit(64, 1, 256, "levels of nesting in any JSON value")
    key_max: int = _limit(512, 32, 512, "bytes of an idempotency key")
    name_max: int = _limit(200, 1, 200, "bytes of a task, queue, tenant, actor or worker name")
    reason_max: int = _limit(2000, 1, 16 * _KIB, "bytes of a reason")
    enqueue_many_max: int = _limit(100_000, 1, 1_000_000, "jobs in one call of enqueue_many")
    write_batch_max: int = _limit(1000, 1, 10_000, "items that the writer puts into one transaction")
    connections_max: int = _limit(20, 2, 1000, "connections to PostgreSQL that one process may hold at once")
    spared_max: int = _limit(
        100, 0, 1_000_000, "attempts of a job that the database's own failures may use up for free"
    )
    wait_poll: float = _limit(0.5, 0.001, 60, "longest pause in seconds between two looks while waiting for a job")
    partitions_max: int = _limit(20_000, 1, 1_000_000, "partitions in the plan of a pipeline run")
    page_records_max: int = _limit(10_000, 1, 1_000_000, "records in one page of a partition")
    pages_max: int = _limit(1_000_000, 1, 1_000_000_000, "pages in one partition")
    page_slice: float = _limit(10.0, 0.01, 3600, "seconds after which a pipeline run's job lets others have its slot")
    consolidate_fetch: int = _limit(2000, 1, 100_000, "staged records that are consolidated in one transaction")
    consolidate_chunk: int = _limit(100, 1, 100_000, "records that one call of consolidate, or of retire, is given")
    consolidate_replicas: int = _limit(5, 1, 16, "jobs that consolidate one run at the same time")
    consolidate_tries: int = _limit(3, 1, 1000, "times that the same staged records are tried before the run fails")
    keep_staged: float = _limit(1.0, 0, 36_500, "days after which staged records of runs that have ended are deleted")
    keep_succeeded: float = _limit(7.0, 0, 36_500, "days after which jobs that succeeded are deleted; 0 keeps them")
    keep_others: float = _limit(30.0, 0, 36_500, "days after which other jobs at rest are deleted; 0 keeps them")
    keep_log: float = _limit(365.0, 0, 36_500, "days for which the record of what is no job is kept; 0 keeps all of it")
    keep_keys: str = _text("always", "whether a key without a key_ttl outlives its job", one_of=("always", "as_jobs"))
    retention_archive: str = _text("", "directory to which jobs are written before they are deleted; nowhere if empty")

    alert_webhook_url: str = _text("", "where alerts are posted as Slack takes them; nowhere if empty", secret=True)
    alert_webhook_severity: str = _text("warning", "the mildest alert that goes there", one_of=_SEVERITIES)
    alert_pager_key: str = _text("", "routing key for events as PagerDuty takes them; none if empty", secret=True)
    alert_pager_url: str = _text("https://events.pagerduty.com/v2/enqueue", "where these events are posted")
    alert_pager_severity: str = _text("critical", "the mildest alert that pages somebody", one_of=_SEVERITIES)
    alert_mail_server: str = _text("", "host or host:port of the server that takes mail; no mail if empty")
    alert_mail_security: str = _text("starttls", "how it is spoken to", one_of=("starttls", "tls", "none"))
    alert_mail_user: str = _text("", "login name at that server; none if empty")
    alert_mail_password: str = _text("", "password at that server", secret=True)
    alert_mail_sender: str = _text("", "address that alerts are sent from")
    alert_mail_recipients: str = _text("", "addresses that alerts are sent to, separated by commas")
    alert_mail_severity: str = _text("warning", "the mildest alert that is mailed", one_of=_SEVERITIES)
    alert_minute_max: int = _limit(10, 1, 1000, "messages a minute to each of these; what is more comes as one summary")
    alert_remind_hours: float = _limit(4.0, 0, 8760, "hours after which a firing alert is told again; 0 is never")
    alert_timeout: float = _limit(10.0, 0.1, 300, "seconds that each of these has for an answer")

    def __post_init__(self) -> None:
        for one in fields(self):
            _check(one.name, getattr(self, one.name), type(one.default), one.metadata)


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
    for name in chosen:
        if name not in _kinds():
            raise InvalidSetting(name, "a name that is not a setting", ", ".join(_kinds()))
    return Settings(**chosen)


def inherited_environment(names: Sequence[str]) -> dict[str, str]:
    """Those variables of this process's environment that are named and set."""
    return {name: os.environ[name] for name in names if name in os.environ}


def _kinds() -> dict[str, type[Any]]:
    return {one.name: type(one.default) for one in fields(Settings)}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    kinds = _kinds()
    for variable, text in environment.items():
        if not variable.startswith(_PREFIX):
            continue
        name = variable.removeprefix(_PREFIX).lower()
        if name in kinds:
            chosen[name] = _number(variable, text, kinds[name])
        elif meant := difflib.get_close_matches(name, kinds, n=1, cutoff=_NEARLY):
            raise InvalidSetting(variable, "a name that is not a setting", f"{_PREFIX}{meant[0].upper()}")
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
            if not isinstance(table, dict):
                raise InvalidSetting(name, f"{key} = {table!r}", "a table [tool.detent]")
        if table or not inner:
            return dict(table)
    return {}


def _number(name: str, text: str, kind: type[Any]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise InvalidSetting(name, repr(text), "a whole number" if kind is int else "a number") from None


def _check(name: str, value: Any, kind: type[Any], metadata: Mapping[str, Any]) -> None:
    if kind is str:
        # What was given is not repeated: there may be a password in it.
        if metadata.get("one_of") and value not in metadata["one_of"]:
            raise InvalidSetting(name, "something else", f"one of {', '.join(metadata['one_of'])}")
        if not isinstance(value, str) or not (value or metadata.get("optional")):
            found = "an empty string" if value == "" else f"a value of type {type(value).__name__}"
            raise InvalidSetting(name, found, metadata["means"])
        return
    least, most = metadata["least"], metadata["most"]
    numbers = (int,) if kind is int else (int, float)
    if isinstance(value, bool) or not isinstance(value, numbers) or not least <= value <= most:
        range_ = f"a {'whole ' if kind is int else ''}number from {least} to {most}"
        raise InvalidSetting(name, repr(value), f"{range_} ({metadata['means']})")
