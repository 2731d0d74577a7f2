"""Workers and services on PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from detent.errors import DetentError, NotFound
from detent.model.service_records import Agenda, WorkerRow, WorkerSeen
from detent.store.postgres.statement import Row, Statement, named
from detent.store.postgres.verb_base import VerbBase, runs

__all__ = ["PostgresWorkers"]

_SEEN = f"""
SELECT {", ".join(Agenda.__struct_fields__)}
  FROM detent.worker_seen_v2(%s::bigint, %s::text, %s::text, %s::integer, %s::text, %s::text, %s::integer, %s::integer,
                             %s::boolean, %s::text),
       LATERAL detent.agenda_v3()
"""
_WORKERS = f"SELECT {', '.join(WorkerRow.__struct_fields__)} FROM"
_LIST = f"{_WORKERS} detent.worker_list_v1(%s::double precision, %s::bigint, %s::integer)"
_GET = f"{_WORKERS} detent.worker_get_v1(%s::bigint)"
_DRAIN = f"{_WORKERS} detent.worker_drain_v1(%s::bigint, %s::text, %s::text)"
_TAKE = "SELECT detent.service_take_v1(%s::text, %s::bigint, %s::double precision)"


def worker_seen(seen: WorkerSeen) -> Statement[Agenda]:
    """Record the worker and read the agenda in one round trip. Lists of names are sent as JSON."""
    params = (
        *(seen.id, seen.name, seen.host, seen.pid, None if seen.queues is None else _json(seen.queues)),
        *(_json(seen.tasks), seen.slots, seen.running, seen.stopping, _json(seen.versions)),
    )
    return Statement(_SEEN, params, lambda rows: Agenda(**named(Agenda.__struct_fields__, rows[0])))


def worker_gone(worker_id: int) -> Statement[None]:
    return Statement("SELECT detent.worker_gone_v1(%s::bigint)", (worker_id,), lambda rows: None)


def worker_list(within: float, after_id: int = 0, limit: int = 1000) -> Statement[list[WorkerRow]]:
    return Statement(_LIST, (float(within), after_id, limit), lambda rows: [_worker(row) for row in rows], writes=False)


def worker_get(worker_id: int) -> Statement[WorkerRow | None]:
    return Statement(_GET, (worker_id,), lambda rows: _worker(rows[0]) if rows else None, writes=False)


def worker_drain(worker_id: int, actor: str, reason: str | None = None) -> Statement[WorkerRow | DetentError]:
    def decode(rows: Sequence[Row]) -> WorkerRow | DetentError:
        return _worker(rows[0]) if rows else NotFound("worker", str(worker_id))

    return Statement(_DRAIN, (worker_id, actor, reason), decode)


def _worker(row: Row) -> WorkerRow:
    fields = named(WorkerRow.__struct_fields__, row)
    queues = None if fields["queues"] is None else _names(fields["queues"])
    versions = msgspec.json.decode(fields["versions"], type=dict[str, tuple[int, ...]])
    return WorkerRow(**fields | {"queues": queues, "tasks": _names(fields["tasks"]), "versions": versions})


def _json(value: Sequence[str] | Mapping[str, Sequence[int]]) -> str:
    return msgspec.json.encode(value).decode()


def _names(text: str) -> tuple[str, ...]:
    return msgspec.json.decode(text, type=tuple[str, ...])


def service_take(name: str, holder: int, seconds: float) -> Statement[int | None]:
    return Statement(_TAKE, (name, holder, float(seconds)), lambda rows: rows[0][0])


def service_drop(name: str, holder: int) -> Statement[None]:
    return Statement("SELECT detent.service_drop_v1(%s::text, %s::bigint)", (name, holder), lambda rows: None)


class PostgresWorkers(VerbBase):
    """The verbs of workers and services."""

    worker_seen = runs(worker_seen)
    worker_gone = runs(worker_gone)
    worker_list = runs(worker_list)
    worker_get = runs(worker_get)
    worker_drain = runs(worker_drain)
    service_take = runs(service_take)
    service_drop = runs(service_drop)
