"""The verbs of pipeline runs, over whatever session there is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from detent.errors import DetentError
from detent.model.pipeline_records import (
    NewPage,
    NewPartition,
    NewPipelineRun,
    PageStored,
    PartitionRow,
    PipelineRunRow,
    Portion,
    PrunedRuns,
    WatermarkRow,
)
from detent.model.records import Moved, NewJob
from detent.store.jobs.postgres_enqueue import job_enqueue
from detent.store.postgres.driver.session import Session
from detent.store.postgres.statements import pipelining
from detent.store.postgres.verb_base import VerbBase

__all__ = ["PostgresPipelining"]

_JOBS_AT_ONCE = 500


class PostgresPipelining(VerbBase):
    """The words of `pipelining` hold."""

    def pipeline_start(self, item: NewPipelineRun) -> PipelineRunRow | DetentError:
        """The run, its line and its planning job in one transaction."""

        def start(session: Session) -> PipelineRunRow | DetentError:
            is_new = session.run(pipelining.pipeline_start(item))
            if isinstance(is_new, DetentError):
                return is_new
            if is_new:
                _enqueue(session, [item.plan])
            row = session.run(pipelining.pipeline_get(item.id))
            assert row is not None
            return row

        return self._session.together(start)

    def pipeline_fan_out(
        self, run_id: int, job_id: int, attempt: int, parts: Sequence[NewPartition], tolerated: int = 0
    ) -> Moved | DetentError:
        """All partitions, all jobs and the move in one transaction."""

        def fan_out(session: Session) -> Moved | DetentError:
            moved = session.run(pipelining.pipeline_fan_out(run_id, job_id, attempt, parts, tolerated))
            if isinstance(moved, Moved) and moved.changed:
                _enqueue(session, [part.job for part in parts])
            return moved

        return self._session.together(fan_out)

    def page_store(self, item: NewPage) -> PageStored | DetentError:
        """Records and offset in one statement."""
        return self._session.run(pipelining.page_store(item))

    def portion_take(self, run_id: int, job_id: int, attempt: int, tries_max: int) -> Portion | DetentError:
        """What nobody holds first, then what is new."""
        return self._session.run(pipelining.portion_take(run_id, job_id, attempt, tries_max))

    def portion_done(self, run_id: int, n: int, job_id: int, attempt: int) -> Moved | DetentError:
        """By whoever took it last."""
        return self._session.run(pipelining.portion_done(run_id, n, job_id, attempt))

    def gone_take(self, run_id: int, job_id: int, attempt: int, limit: int) -> list[str] | DetentError:
        """By comparing what is staged with what was ever seen."""
        return self._session.run(pipelining.gone_take(run_id, job_id, attempt, limit))

    def gone_done(self, run_id: int, job_id: int, attempt: int, keys: Sequence[str]) -> Moved | DetentError:
        """They are no longer among the seen."""
        return self._session.run(pipelining.gone_done(run_id, job_id, attempt, keys))

    def pipeline_complete(self, run_id: int, job_id: int, attempt: int) -> Moved | DetentError:
        """The run and its watermark in one statement."""
        return self._session.run(pipelining.pipeline_complete(run_id, job_id, attempt))

    def pipeline_force(self, run_id: int, actor: str, reason: str) -> Moved | DetentError:
        """On record, marked."""
        return self._session.run(pipelining.pipeline_force(run_id, actor, reason))

    def pipeline_retry(self, run_id: int, actor: str, reason: str | None = None) -> Moved | DetentError:
        """Run, partitions and jobs in one statement."""
        answer = self._session.run(pipelining.pipeline_retry(run_id, actor, reason))
        if self._bounds is not None:
            # The jobs that were brought back may stand below what was claimed.
            self._bounds.forget()
        return answer

    def pipeline_get(self, run_id: int) -> PipelineRunRow | None:
        """By its id."""
        return self._session.run(pipelining.pipeline_get(run_id))

    def pipeline_list(
        self,
        *,
        state: str | None = None,
        name: str | None = None,
        tenant: str | None = None,
        before_id: int | None = None,
        limit: int = 100,
    ) -> list[PipelineRunRow]:
        """The newest first."""
        return self._session.run(pipelining.pipeline_list(state, name, tenant, before_id, limit))

    def partition_list(
        self, run_id: int, *, state: str | None = None, after_n: int = 0, limit: int = 1000
    ) -> list[PartitionRow]:
        """By number."""
        return self._session.run(pipelining.partition_list(run_id, state, after_n, limit))

    def watermark_list(self, *, tenant: str | None = None, name: str | None = None) -> list[WatermarkRow]:
        """By tenant and name."""
        return self._session.run(pipelining.watermark_list(tenant, name))

    def pipeline_prune(self, staged_before: datetime, before: datetime, limit: int) -> PrunedRuns:
        """Records first; a run goes when none of its own are left."""
        return self._session.run(pipelining.pipeline_prune(staged_before, before, limit))


def _enqueue(session: Session, jobs: Sequence[NewJob]) -> None:
    """All of them, or the whole transaction is given up."""
    for start in range(0, len(jobs), _JOBS_AT_ONCE):
        for answer in session.run(job_enqueue(jobs[start : start + _JOBS_AT_ONCE], notify=False)):
            if isinstance(answer, DetentError):
                raise answer
