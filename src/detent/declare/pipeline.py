"""A pipeline is a decorated dataclass whose methods plan partitions, fetch pages and consolidate records."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Protocol

from detent.declare.declaration import RunDeclaration, is_tolerance
from detent.declare.limit import Limit
from detent.declare.partition_split import split_by_count
from detent.declare.settings import Settings
from detent.declare.task import Options
from detent.errors import InvalidInput, InvalidSetting
from detent.model import json_codec
from detent.model.backoff import Retry
from detent.model.pipeline_records import PIPELINE_TASKS

__all__ = ["Page", "Partition", "Pipeline", "PipelineMethods", "PipelineOptions", "split_by_count"]

_LONGEST_PART = "consolidate/"
_HOLD_MAX = 30 * 86_400.0


@dataclass(frozen=True, slots=True)
class Partition:
    """One part of what a run fetches: a key that is unique in the plan, and a payload for `page`."""

    key: str
    payload: Any = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a partition: records as (key, data), and the offset of the next page; None if it is the last."""

    records: Sequence[tuple[str, Any]]
    next: Any = None


class PipelineMethods(Protocol):
    """The methods that a pipeline needs; each may be plain or async. Optional: `retire(tx, keys)`, which gets the keys
    that earlier runs had consolidated and a full run did not see, and `stage(tx, records)`, which writes the records of
    a page to a table of your own, in the transaction that moves the offset."""

    def plan(self, since: Any, /) -> Any:
        """Return the partitions of a run, as an iterable of `Partition`; it may be a generator. `since` is the
        watermark, a datetime; None for a full run."""
        ...

    def page(self, partition: Partition, offset: Any, /) -> Any:
        """Return the `Page` at an offset, which is 0 at first, then the `next` of the page before."""
        ...

    def consolidate(self, tx: Any, records: list[Any], /) -> Any:
        """Write records to your tables with `tx.execute`, in the transaction that marks them as consolidated. Each is
        (key, data), or only the key if the pipeline has `stage`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOptions:
    """The options of a pipeline, checked when it is declared."""

    watermark: str | None = None
    overlap: float | timedelta = 0.0
    tolerate: float = 0
    hold: float | timedelta = 0.0
    queue: str = "default"
    priority: int = 0
    retry: Retry = field(default_factory=Retry)
    timeout: float | None = None
    limit: Limit | None = None
    limit_key: str | None = None

    def __post_init__(self) -> None:
        for name in ("overlap", "hold"):
            seconds = _seconds(getattr(self, name))
            if seconds is None or not 0 <= seconds <= _HOLD_MAX:
                raise InvalidSetting(name, repr(getattr(self, name))[:80], f"0 to {_HOLD_MAX:g} seconds")
        tolerated: object = self.tolerate
        if not is_tolerance(tolerated):
            allowed = "a count (tolerate=2), or a share below 1 (tolerate=0.1)"
            raise InvalidSetting("tolerate", repr(tolerated)[:80], allowed)
        if self.limit_key is not None and not isinstance(self.limit_key, str):
            raise InvalidSetting("limit_key", repr(self.limit_key)[:80], "a string")
        self.for_pages()

    @property
    def overlap_by(self) -> timedelta:
        """How much earlier than the watermark a run starts."""
        return timedelta(seconds=_seconds(self.overlap) or 0.0)

    @property
    def hold_for(self) -> timedelta:
        """How long a skipped run waits to be forced before it fails."""
        return timedelta(seconds=_seconds(self.hold) or 0.0)

    def tolerated(self, partitions: int) -> int:
        """Return how many of that many partitions may fail."""
        return int(self.tolerate if isinstance(self.tolerate, int) else self.tolerate * partitions)

    def for_pages(self) -> Options:
        """Return the options of the jobs that read the source."""
        return self._options(retry=self.retry, timeout=self.timeout, limit=self.limit, limit_key=self.limit_key)

    def for_others(self) -> Options:
        """Return the options of the other jobs."""
        return self._options(retry=self.retry)

    def _options(self, **more: Any) -> Options:
        return Options(queue=self.queue, priority=self.priority, dead_letter=False, **more)


class Pipeline(RunDeclaration):
    """A declared pipeline: its class, its options, and how its values are stored."""

    noun = "pipeline"
    methods: ClassVar = {
        "plan": ("plan(self, since)", True),
        "page": ("page(self, partition, offset)", True),
        "consolidate": ("consolidate(self, tx, records)", True),
        "retire": ("retire(self, tx, keys)", False),
        "stage": ("stage(self, tx, records)", False),
    }

    def __init__(self, kind: type[Any], *, name: str | None, options: PipelineOptions, settings: Settings) -> None:
        name_max = settings.name_max - len(PIPELINE_TASKS + _LONGEST_PART)
        super().__init__(kind, name, name_max, settings)
        self.options = options
        watermark = self.name if options.watermark is None else options.watermark
        self.watermark = json_codec.text(watermark, field="watermark", bytes_max=name_max)

    @property
    def retires(self) -> bool:
        """Whether it has a method `retire`."""
        return self.method("retire") is not None

    @property
    def stages(self) -> bool:
        """Whether it has `stage`, and so keeps staged records in a table of its own."""
        return self.method("stage") is not None

    def task(self, part: str) -> str:
        """Return the name of the task for a part of its runs."""
        return f"{PIPELINE_TASKS}{part}/{self.name}"

    def checked_plan(self, found: object) -> list[tuple[str, str]]:
        """Return key and payload of each partition as they are stored. `InvalidInput` for what is not a plan."""
        if found is None or isinstance(found, str | bytes | Mapping):
            raise InvalidInput("plan", f"a value of type {type(found).__name__}", "an iterable of Partition")
        settings, most = self._settings, self._settings.partitions_max
        parts: dict[str, str] = {}
        try:
            each = iter(found)  # type: ignore[call-overload]
        except TypeError:
            raise InvalidInput("plan", f"a value of type {type(found).__name__}", "an iterable of Partition") from None
        for part in each:
            if not isinstance(part, Partition):
                raise InvalidInput("plan", f"a {type(part).__name__} in it", "an iterable of Partition")
            key = json_codec.text(part.key, field="partition key", bytes_max=settings.key_max)
            if key in parts:
                raise InvalidInput("plan", f"the partition {key!r:.80} twice", "each partition once")
            if len(parts) >= most:
                raise InvalidInput("plan", f"more than {most} partitions", f"at most {most} (partitions_max)")
            parts[key] = self._encode(f"payload of {key!r:.80}", part.payload)
        return list(parts.items())

    def checked_page(self, page: object, offset: str) -> tuple[dict[str, Any], str | None]:
        """Return the records of a page in the order of their keys, encoded unless the pipeline stages them itself, and
        the next offset. If a key comes twice, its last record counts. `InvalidInput` if it is not a page, or its next
        offset would fetch the same page for ever."""
        settings, most = self._settings, self._settings.page_records_max
        if not isinstance(page, Page):
            raise InvalidInput("page", f"a value of type {type(page).__name__}", "a Page")
        stages, records = self.stages, dict[str, Any]()
        for one in page.records:
            if not isinstance(one, tuple | list) or len(one) != 2:
                raise InvalidInput("page", f"a record that is {one!r:.80}", "records as (key, data)")
            key = json_codec.text(one[0], field="record key", bytes_max=settings.key_max)
            records[key] = one[1] if stages else self._encode(f"record {key!r:.80}", one[1])
            if len(records) > most:
                raise InvalidInput("page", f"more than {most} records", f"at most {most} (page_records_max)")
        # In key order, to avoid deadlocks between pages that share keys and are written at the same time.
        records = dict(sorted(records.items()))
        if page.next is None:
            return records, None
        following = json_codec.encode(page.next, field="next offset", size_max=settings.metadata_max)
        if following == offset:
            raise InvalidInput(
                "next", f"{following[:80]}, the offset of this page", "another offset, or None after the last page"
            )
        return records, following

    def _check_method(self, method: str, signature: str, required: bool) -> None:
        super()._check_method(method, signature, required)
        found = self.method(method)
        if method != "plan" and (inspect.isgeneratorfunction(found) or inspect.isasyncgenfunction(found)):
            # Calling it would run none of its code.
            allowed = f"{signature}, which returns; only plan may be a generator"
            raise InvalidSetting(self.name, f"a {method} that yields", allowed)


def _seconds(value: object) -> float | None:
    if isinstance(value, timedelta):
        return value.total_seconds()
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
