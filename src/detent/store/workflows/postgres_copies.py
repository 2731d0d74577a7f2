"""Rewinds and forks of workflows on PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from detent.errors import DetentError, NotFound
from detent.model.copy_records import Fork, Forked, Rewind, Rewound
from detent.store.postgres.statement import Row, Statement, texts
from detent.store.postgres.verb_base import VerbBase
from detent.store.workflows.copy_rules import refused, rewound_to

__all__ = ["PostgresCopies"]

_REWIND = """
SELECT from_state, why, names, generation, kept, repeated, signals
  FROM detent.workflow_rewind_v1(%s::bigint, %s::text, %s::boolean, %s::text, %s::text, %s::text, %s::text, %s::boolean)
"""
_FORK = """
SELECT is_there, why, names, steps
  FROM detent.workflow_fork_v1(%s::bigint, %s::bigint, %s::text, %s::boolean, %s::text, %s::text, %s::text, %s::text,
                               %s::text[], %s::text[], %s::boolean, %s::boolean)
"""


def workflow_rewind(item: Rewind, *, notify: bool) -> Statement[Rewound | DetentError]:
    """`notify` as for `job_enqueue`."""

    def decode(rows: Sequence[Row]) -> Rewound | DetentError:
        from_state, why, names, generation, kept, repeated, signals = rows[0]
        if from_state is None:
            return NotFound("job", str(item.job_id))
        if why is not None:
            return refused(item.job_id, "rewound", item.to, why, names or ())
        return Rewound(item.job_id, generation, kept, repeated, signals)

    about = (item.force, item.actor, item.reason, item.seed, rewound_to(item), notify)
    return Statement(_REWIND, (item.job_id, item.to, *about), decode)


def workflow_fork(item: Fork, *, notify: bool) -> Statement[Forked | DetentError]:
    """`notify` as for `job_enqueue`."""

    def decode(rows: Sequence[Row]) -> Forked | DetentError:
        is_there, why, names, steps = rows[0]
        if not is_there:
            return NotFound("job", str(item.job_id))
        if why is not None:
            return refused(item.job_id, "forked", item.at, why, names or ())
        return Forked(item.new_id, item.job_id, steps)

    about = (item.at, item.force, item.actor, item.reason, item.seed, item.metadata)
    values = (texts(path for path, _ in item.replaced), texts(value for _, value in item.replaced))
    return Statement(_FORK, (item.job_id, item.new_id, *about, *values, item.keeps_payload, notify), decode)


class PostgresCopies(VerbBase):
    """`workflow_rewind` and `workflow_fork`."""

    def workflow_rewind(self, item: Rewind) -> Rewound | DetentError:
        """Notify waiters at once from a caller's own transaction."""
        answer = self._session.run(workflow_rewind(item, notify=self._callers_own))
        self._forget_bounds()
        return answer

    def workflow_fork(self, item: Fork) -> Forked | DetentError:
        """Notify waiters at once from a caller's own transaction."""
        answer = self._session.run(workflow_fork(item, notify=self._callers_own))
        self._forget_bounds()
        return answer
