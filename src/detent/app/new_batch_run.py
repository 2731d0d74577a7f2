"""Creating a batch run with the job that plans it."""

from __future__ import annotations

from detent.app.registry import Registry
from detent.batch.run_jobs import new_run_job
from detent.batch.tasks import BatchTasks
from detent.client.actor import actor_and_reason
from detent.client.engine import Engine
from detent.client.job_verbs import unwrap
from detent.model.batch_records import BatchRunRow, NewBatchRun

__all__ = ["begin_batch_run"]


def begin_batch_run(
    engine: Engine,
    registry: Registry,
    tasks: BatchTasks,
    payload: str,
    actor: str | None,
    reason: str | None,
    tenant: str,
    correlation_id: str | None,
    metadata: str | None,
    puts_right: int | None = None,
) -> BatchRunRow:
    """Create a run of a batch with the job that plans it."""
    who, why = actor_and_reason(actor, reason, engine.settings)
    count, share = tasks.batch.options.tolerated
    (run_id,) = engine.ids.take(1)
    new = NewBatchRun(
        id=run_id,
        batch=tasks.batch.name,
        payload=payload,
        fingerprint=tasks.batch.fingerprint,
        actor=who,
        reason=why,
        tenant=tenant,
        correlation_id=correlation_id,
        metadata=metadata,
        tolerate_count=count,
        tolerate_share=share,
    )
    asked = {"run": run_id} if puts_right is None else {"run": run_id, "puts_right": puts_right}
    plan = new_run_job(registry.engine_ref, tasks.plan.call(**asked), new)
    return unwrap(engine.store.batch_create(new, plan))
