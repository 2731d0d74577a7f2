"""Settings: their limits, and where they come from: arguments, then `DETENT_*`, then a file.

The file is `detent.toml`, or the table `[tool.detent]` of `pyproject.toml`, in the working directory. An unknown name
or a value out of range is refused with `InvalidSetting`, so that a typing mistake is not ignored. In the environment
only names similar to a setting are refused, since an orchestrator sets variables with this prefix for a service called
detent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
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
    """Declare a text setting, which may be empty, or one of a few values. Secrets are never shown."""
    return field(default=default, repr=not secret, metadata={"means": means, "optional": True, "one_of": one_of})


_SEVERITIES = ("info", "warning", "critical")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings. Limits (`…_max`) are in bytes unless the name says otherwise."""

    database_url: str = field(
        default="sqlite:///detent.db", metadata={"means": "URL of the database: sqlite:///path or postgresql://…"}
    )
    actor: str = field(
        default="client", metadata={"means": "Actor on record for changes, unless a call or acting_as() names another."}
    )
    payload_max: int = _limit(_MIB, 64, 64 * _MIB, "Maximum size of a job's payload as JSON, in bytes.")
    result_max: int = _limit(_MIB, 64, 64 * _MIB, "Maximum size of a job's result as JSON, in bytes.")
    step_max: int = _limit(
        256 * _KIB, 64, 64 * _MIB, "Maximum size of the value of a workflow's step as JSON, in bytes."
    )
    metadata_max: int = _limit(16 * _KIB, 64, _MIB, "Maximum size of a job's metadata as JSON, in bytes.")
    event_max: int = _limit(
        64 * _KIB, 64, _MIB, "Maximum size of an event's message, and of its payload as JSON, in bytes."
    )
    depth_max: int = _limit(64, 1, 256, "Maximum nesting depth of a JSON value.")
    key_max: int = _limit(512, 32, 512, "Maximum size of an idempotency key, in bytes.")
    name_max: int = _limit(200, 1, 200, "Maximum size of the name of a task, queue, tenant, actor or worker, in bytes.")
    reason_max: int = _limit(2000, 1, 16 * _KIB, "Maximum size of a reason, in bytes.")
    enqueue_many_max: int = _limit(100_000, 1, 1_000_000, "Maximum number of jobs in one call of enqueue_many.")
    write_batch_max: int = _limit(1000, 1, 10_000, "Maximum number of enqueued items that share one transaction.")
    connections_max: int = _limit(20, 2, 1000, "Maximum number of connections to PostgreSQL per process.")
    spared_max: int = _limit(
        100, 0, 1_000_000, "Attempts of a job that do not count because the database failed, at most."
    )
    wait_poll: float = _limit(0.5, 0.001, 60, "Maximum pause between two polls while waiting for a job, in seconds.")
    partitions_max: int = _limit(20_000, 1, 1_000_000, "Maximum number of partitions in the plan of a pipeline run.")
    page_records_max: int = _limit(10_000, 1, 1_000_000, "Maximum number of records in one page of a partition.")
    pages_max: int = _limit(1_000_000, 1, 1_000_000_000, "Maximum number of pages in one partition.")
    page_slice: float = _limit(
        10.0, 0.01, 3600, "Seconds after which a job of a pipeline run gives its slot to others."
    )
    consolidate_fetch: int = _limit(
        2000, 1, 100_000, "Number of staged records that are consolidated in one transaction."
    )
    consolidate_chunk: int = _limit(100, 1, 100_000, "Number of records per call of consolidate or retire.")
    consolidate_replicas: int = _limit(5, 1, 16, "Number of jobs that consolidate one run in parallel.")
    consolidate_tries: int = _limit(3, 1, 1000, "Number of attempts at the same staged records before the run fails.")
    keep_staged: float = _limit(1.0, 0, 36_500, "Days after which staged records of ended runs are deleted.")
    keep_succeeded: float = _limit(7.0, 0, 36_500, "Days after which succeeded jobs are deleted; 0 keeps them.")
    keep_others: float = _limit(30.0, 0, 36_500, "Days after which other ended jobs are deleted; 0 keeps them.")
    keep_log: float = _limit(
        365.0, 0, 36_500, "Days after which transitions of entities other than jobs are deleted; 0 keeps them."
    )
    keep_keys: str = _text(
        "always", "Whether a key without key_ttl is kept when its job is deleted.", one_of=("always", "as_jobs")
    )
    retention_archive: str = _text("", "Directory to which jobs are written before they are deleted; empty for none.")

    webhook_allow: str = _text(
        "",
        "Hosts, host:port and networks that outgoing webhooks may reach though they are private, separated by commas.",
    )
    webhook_ports: str = _text("443, 8443", "Ports that outgoing webhooks may have, separated by commas.")

    alert_webhook_url: str = _text(
        "", "URL to which alerts are posted in the format of Slack; empty for none.", secret=True
    )
    alert_webhook_severity: str = _text("warning", "Lowest severity that is posted to the webhook.", one_of=_SEVERITIES)
    alert_pager_key: str = _text("", "Routing key for PagerDuty events; empty for none.", secret=True)
    alert_pager_url: str = _text("https://events.pagerduty.com/v2/enqueue", "URL to which PagerDuty events are posted.")
    alert_pager_severity: str = _text("critical", "Lowest severity that is sent to the pager.", one_of=_SEVERITIES)
    alert_mail_server: str = _text("", "Host or host:port of the mail server; empty for no mail.")
    alert_mail_security: str = _text(
        "starttls", "Encryption of the connection to the mail server.", one_of=("starttls", "tls", "none")
    )
    alert_mail_user: str = _text("", "Login name at the mail server; empty for none.")
    alert_mail_password: str = _text("", "Password at the mail server.", secret=True)
    alert_mail_sender: str = _text("", "Address from which alerts are mailed.")
    alert_mail_recipients: str = _text("", "Addresses to which alerts are mailed, separated by commas.")
    alert_mail_severity: str = _text("warning", "Lowest severity that is mailed.", one_of=_SEVERITIES)
    alert_minute_max: int = _limit(10, 1, 1000, "Maximum number of messages per minute and sink; more are summarised.")
    alert_remind_hours: float = _limit(4.0, 0, 8760, "Hours after which a firing alert is sent again; 0 for never.")
    alert_timeout: float = _limit(10.0, 0.1, 300, "Time limit for the answer of a sink, in seconds.")

    def __post_init__(self) -> None:
        for one in fields(self):
            _check(one.name, getattr(self, one.name), type(one.default), one.metadata)


def load_settings(
    arguments: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """Return the settings: arguments (None counts as not given) override environment, file and defaults, in that
    order."""
    chosen: dict[str, Any] = {}
    chosen.update(_from_file(directory or Path()))
    chosen.update(_from_environment(os.environ if environment is None else environment))
    chosen.update({name: value for name, value in (arguments or {}).items() if value is not None})
    for name in chosen:
        if name not in _kinds():
            raise InvalidSetting(name, "a name that is not a setting", ", ".join(_kinds()))
    return Settings(**chosen)


def inherited_environment(names: Sequence[str]) -> dict[str, str]:
    """Return those of the named environment variables that are set."""
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
        elif meant := _nearest(name, kinds):
            raise InvalidSetting(variable, "a name that is not a setting", f"{_PREFIX}{meant.upper()}")
    return chosen


def _nearest(name: str, names: Iterable[str]) -> str | None:
    import difflib

    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=_NEARLY)), None)


def _from_file(directory: Path) -> dict[str, Any]:
    for name, inner in (("detent.toml", ()), ("pyproject.toml", ("tool", "detent"))):
        path = directory / name
        if not path.is_file():
            continue
        import tomllib

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
        # The value is not shown: it may contain a password.
        if metadata.get("one_of") and value not in metadata["one_of"]:
            raise InvalidSetting(name, "another value", f"one of {', '.join(metadata['one_of'])}")
        if not isinstance(value, str) or not (value or metadata.get("optional")):
            found = "an empty string" if value == "" else f"a value of type {type(value).__name__}"
            raise InvalidSetting(name, found, metadata["means"].rstrip("."))
        return
    least, most = metadata["least"], metadata["most"]
    numbers = (int,) if kind is int else (int, float)
    if isinstance(value, bool) or not isinstance(value, numbers) or not least <= value <= most:
        range_ = f"a {'whole ' if kind is int else ''}number from {least} to {most}"
        raise InvalidSetting(name, repr(value), f"{range_} ({metadata['means'].rstrip('.')})")
