"""The options of a worker."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from detent.errors import InvalidSetting
from detent.model import json_codec
from detent.worker.output import LogFormat, LogLevel

__all__ = ["WorkerOptions", "parse_duration", "parse_queues"]

_NAME_MAX = 200
_DURATION = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|d)?")
_SLOTS = re.compile(r"[0-9]{1,9}")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, None: 1.0}


class WorkerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `detent worker`. `queues` None means every queue; `queue_slots` limits some of them."""

    app: str
    name: str
    queues: tuple[str, ...] | None = None
    queue_slots: dict[str, int] = {}
    slots: int = 16
    processes: int = 1
    lease: float = 30.0
    grace: float = 30.0
    drain: bool = False
    max_jobs: int = 0
    reserve_max: int = 3000
    cancel_grace: float = 10.0
    held_up_max: float = 10.0
    keep_succeeded: float = 7.0
    keep_others: float = 30.0
    archive: str = ""
    keep_staged: float = 1.0
    keep_log: float = 365.0
    keep_keys: str = "always"
    log_format: LogFormat = "text"
    log_level: LogLevel | None = None
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    metrics_all: bool = False
    debug: bool = False
    log_limit_fd: int = -1
    """Descriptor of the file in which all processes of a worker count their log lines; -1 if there is none."""

    @property
    def package(self) -> str:
        """The top-level package or module of the application."""
        return self.app.partition(":")[0].partition(".")[0]

    @property
    def shared_fds(self) -> tuple[int, ...]:
        """Descriptors of the files that every process of the worker inherits."""
        return () if self.log_limit_fd < 0 else (self.log_limit_fd,)

    def __post_init__(self) -> None:
        json_codec.text(self.name, field="name", bytes_max=_NAME_MAX)
        _between("slots", self.slots, 1, 10_000)
        _between("processes", self.processes, 1, 256)
        _between("lease", self.lease, 0.5, 86_400)
        _between("grace", self.grace, 0, 86_400)
        _between("max_jobs", self.max_jobs, 0, 10**12)
        _between("cancel_grace", self.cancel_grace, 0, 86_400)
        _between("held_up_max", self.held_up_max, 0.1, 86_400)
        if self.metrics_port is not None:
            _between("metrics_port", self.metrics_port, 0, 65_535)
            check_host(self.metrics_host)
        for queue, slots in self.queue_slots.items():
            _between(f"slots of queue {queue}", slots, 1, 10_000)


def check_host(host: str) -> str:
    """Return an address to listen on. `InvalidSetting` unless it is an IP address."""
    import ipaddress  # not loaded into every worker

    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise InvalidSetting("metrics_host", repr(host)[:80], "an IP address, such as 127.0.0.1 or 0.0.0.0") from None
    return host


def parse_queues(text: str | None) -> tuple[tuple[str, ...] | None, dict[str, int]]:
    """Parse `a,b:4` as the queues a and b, with at most 4 jobs of b at once. Raises `InvalidSetting`."""
    if not text:
        return None, {}
    names: list[str] = []
    slots: dict[str, int] = {}
    for part in text.split(","):
        name, colon, number = part.strip().partition(":")
        if not name or (colon and not _SLOTS.fullmatch(number)):
            raise InvalidSetting("queues", repr(text), "names separated by commas, each with an optional :slots")
        names.append(json_codec.text(name, field="queue", bytes_max=_NAME_MAX))
        if colon:
            slots[name] = int(number)
    return tuple(names), slots


def parse_duration(text: str) -> float:
    """Parse `30s`, `500ms`, `5m`, `2h`, `1d` or plain seconds. Raises `InvalidSetting`."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise InvalidSetting("duration", repr(text), "a number with ms, s, m, h or d, such as 30s")
    return float(match["number"]) * _UNITS[match["unit"]]


def _between(name: str, value: Any, least: float, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InvalidSetting(name, repr(value), f"a number from {least:g} to {most:g}")
