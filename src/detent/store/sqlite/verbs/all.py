"""All the verbs over one executor, and the way to give each a transaction of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from detent.store.sqlite.verbs.alert_measures import AlertMeasureVerbs
from detent.store.sqlite.verbs.alert_telling import AlertTellingVerbs
from detent.store.sqlite.verbs.apart import ApartVerbs
from detent.store.sqlite.verbs.consolidation import ConsolidationVerbs
from detent.store.sqlite.verbs.declarations import DeclarationVerbs
from detent.store.sqlite.verbs.effects import EffectVerbs
from detent.store.sqlite.verbs.looking import LookingVerbs
from detent.store.sqlite.verbs.ops import OpsVerbs
from detent.store.sqlite.verbs.reconciling import ReconcileVerbs
from detent.store.sqlite.verbs.retention import RetentionVerbs
from detent.store.sqlite.verbs.schedules import ScheduleVerbs
from detent.store.sqlite.verbs.services import ServiceVerbs
from detent.store.sqlite.verbs.silence import SilenceVerbs
from detent.store.sqlite.verbs.workers import WorkerVerbs

__all__ = ["EachAlone", "SqliteVerbs"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class SqliteVerbs(
    OpsVerbs,
    EffectVerbs,
    ApartVerbs,
    ReconcileVerbs,
    ServiceVerbs,
    RetentionVerbs,
    WorkerVerbs,
    ScheduleVerbs,
    SilenceVerbs,
    LookingVerbs,
    AlertMeasureVerbs,
    AlertTellingVerbs,
    ConsolidationVerbs,
    DeclarationVerbs,
):
    """Every verb of the contract, inside the transaction that the executor stands for."""


class _Runs(Protocol):
    def _write(self, work: Callable[[SqliteVerbs], T]) -> T: ...

    def _read(self, work: Callable[[SqliteVerbs], T]) -> T: ...


def _writing(verb: Callable[Concatenate[SqliteVerbs, P], R]) -> Callable[Concatenate[_Runs, P], R]:
    def alone(self: _Runs, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._write(lambda verbs: verb(verbs, *args, **kwargs))

    alone.__name__, alone.__doc__ = verb.__name__, verb.__doc__
    return alone


def _reading(verb: Callable[Concatenate[SqliteVerbs, P], R]) -> Callable[Concatenate[_Runs, P], R]:
    def alone(self: _Runs, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._read(lambda verbs: verb(verbs, *args, **kwargs))

    alone.__name__, alone.__doc__ = verb.__name__, verb.__doc__
    return alone


class EachAlone:
    """The verbs, each run by `_write` or `_read` of the class that inherits this."""

    ids_reserve = _writing(SqliteVerbs.ids_reserve)
    job_enqueue = _writing(SqliteVerbs.job_enqueue)
    job_claim = _writing(SqliteVerbs.job_claim)
    job_start = _writing(SqliteVerbs.job_start)
    effect_begin = _writing(SqliteVerbs.effect_begin)
    lease_renew = _writing(SqliteVerbs.lease_renew)
    event_append = _writing(SqliteVerbs.event_append)
    job_commit = _writing(SqliteVerbs.job_commit)
    job_finish = _writing(SqliteVerbs.job_finish)
    job_abort = _writing(SqliteVerbs.job_abort)
    job_cancel = _writing(SqliteVerbs.job_cancel)
    job_retry = _writing(SqliteVerbs.job_retry)
    job_discard = _writing(SqliteVerbs.job_discard)
    job_force = _writing(SqliteVerbs.job_force)
    effect_settle = _writing(SqliteVerbs.effect_settle)
    identity_list = _reading(SqliteVerbs.identity_list)
    identity_renew = _writing(SqliteVerbs.identity_renew)
    job_promote = _writing(SqliteVerbs.job_promote)
    job_expire = _writing(SqliteVerbs.job_expire)
    lease_reap = _writing(SqliteVerbs.lease_reap)
    job_claim_each = _writing(SqliteVerbs.job_claim_each)
    job_promote_each = _writing(SqliteVerbs.job_promote_each)
    job_expire_each = _writing(SqliteVerbs.job_expire_each)
    lease_reap_each = _writing(SqliteVerbs.lease_reap_each)
    job_recover = _writing(SqliteVerbs.job_recover)
    job_prune = _writing(SqliteVerbs.job_prune)
    key_expire = _writing(SqliteVerbs.key_expire)
    key_forget = _writing(SqliteVerbs.key_forget)
    limit_prune = _writing(SqliteVerbs.limit_prune)
    log_prune = _writing(SqliteVerbs.log_prune)
    queue_pause = _writing(SqliteVerbs.queue_pause)
    queue_resume = _writing(SqliteVerbs.queue_resume)
    entity_move = _writing(SqliteVerbs.entity_move)
    claim_find = _reading(SqliteVerbs.claim_find)
    cancel_find = _reading(SqliteVerbs.cancel_find)
    job_get = _reading(SqliteVerbs.job_get)
    job_list = _reading(SqliteVerbs.job_list)
    job_details = _reading(SqliteVerbs.job_details)
    record_search = _reading(SqliteVerbs.record_search)
    job_executions = _reading(SqliteVerbs.job_executions)
    job_events = _reading(SqliteVerbs.job_events)
    transitions = _reading(SqliteVerbs.transitions)
    state_as_of = _reading(SqliteVerbs.state_as_of)
    counts = _reading(SqliteVerbs.counts)
    counts_as_of = _reading(SqliteVerbs.counts_as_of)
    figures = _reading(SqliteVerbs.figures)
    batch_figures = _reading(SqliteVerbs.batch_figures)
    now = _reading(SqliteVerbs.now)
    worker_seen = _writing(SqliteVerbs.worker_seen)
    worker_gone = _writing(SqliteVerbs.worker_gone)
    worker_list = _reading(SqliteVerbs.worker_list)
    service_take = _writing(SqliteVerbs.service_take)
    service_drop = _writing(SqliteVerbs.service_drop)
    declaration_put = _writing(SqliteVerbs.declaration_put)
    declaration_list = _reading(SqliteVerbs.declaration_list)
    schedule_put = _writing(SqliteVerbs.schedule_put)
    schedule_remove = _writing(SqliteVerbs.schedule_remove)
    schedule_run = _writing(SqliteVerbs.schedule_run)
    schedule_pause = _writing(SqliteVerbs.schedule_pause)
    schedule_resume = _writing(SqliteVerbs.schedule_resume)
    schedule_list = _reading(SqliteVerbs.schedule_list)
    schedule_due = _reading(SqliteVerbs.schedule_due)
    schedule_fire = _writing(SqliteVerbs.schedule_fire)
    dead_report = _reading(SqliteVerbs.dead_report)
    job_count = _reading(SqliteVerbs.job_count)
    counts_fold = _writing(SqliteVerbs.counts_fold)
    job_move = _writing(SqliteVerbs.job_move)
    operation_start = _writing(SqliteVerbs.operation_start)
    operation_step = _writing(SqliteVerbs.operation_step)
    operation_skip = _writing(SqliteVerbs.operation_skip)
    operation_cancel = _writing(SqliteVerbs.operation_cancel)
    operation_get = _reading(SqliteVerbs.operation_get)
    operation_list = _reading(SqliteVerbs.operation_list)
    job_silent = _reading(SqliteVerbs.job_silent)
    job_prunable = _reading(SqliteVerbs.job_prunable)
    job_drop = _writing(SqliteVerbs.job_drop)
    times_put = _writing(SqliteVerbs.times_put)
    times_list = _reading(SqliteVerbs.times_list)
    result_drop = _writing(SqliteVerbs.result_drop)
    recovery_set = _writing(SqliteVerbs.recovery_set)
    recovery_list = _reading(SqliteVerbs.recovery_list)
    limit_put = _writing(SqliteVerbs.limit_put)
    limit_list = _reading(SqliteVerbs.limit_list)
    limit_refill = _reading(SqliteVerbs.limit_refill)
    limit_close = _writing(SqliteVerbs.limit_close)
    limit_reset = _writing(SqliteVerbs.limit_reset)
    limit_pause = _writing(SqliteVerbs.limit_pause)
    limit_remove = _writing(SqliteVerbs.limit_remove)
    limit_charge = _writing(SqliteVerbs.limit_charge)
    untold_take = _writing(SqliteVerbs.untold_take)
    untold_keep = _writing(SqliteVerbs.untold_keep)
    untold_done = _writing(SqliteVerbs.untold_done)
    queue_list = _reading(SqliteVerbs.queue_list)
    alert_raise = _writing(SqliteVerbs.alert_raise)
    alert_resolve = _writing(SqliteVerbs.alert_resolve)
    alert_ack = _writing(SqliteVerbs.alert_ack)
    alert_list = _reading(SqliteVerbs.alert_list)
    alert_policy_put = _writing(SqliteVerbs.alert_policy_put)
    alert_policy_drop = _writing(SqliteVerbs.alert_policy_drop)
    alert_policy_list = _reading(SqliteVerbs.alert_policy_list)
    alert_tally = _writing(SqliteVerbs.alert_tally)
    alert_figures = _reading(SqliteVerbs.alert_figures)
    alert_measure = _reading(SqliteVerbs.alert_measure)
    alert_spread = _writing(SqliteVerbs.alert_spread)
    alert_take = _writing(SqliteVerbs.alert_take)
    alert_told = _writing(SqliteVerbs.alert_told)
    alert_deliveries = _reading(SqliteVerbs.alert_deliveries)
    alert_sweep = _writing(SqliteVerbs.alert_sweep)
    ops_queue = _writing(SqliteVerbs.ops_queue)
    ops_claim = _writing(SqliteVerbs.ops_claim)
    ops_append = _writing(SqliteVerbs.ops_append)
    ops_renew = _writing(SqliteVerbs.ops_renew)
    ops_finish = _writing(SqliteVerbs.ops_finish)
    ops_cancel = _writing(SqliteVerbs.ops_cancel)
    ops_get = _reading(SqliteVerbs.ops_get)
    ops_list = _reading(SqliteVerbs.ops_list)
    ops_environments = _reading(SqliteVerbs.ops_environments)
    batch_create = _writing(SqliteVerbs.batch_create)
    target_add = _writing(SqliteVerbs.target_add)
    target_previewed = _writing(SqliteVerbs.target_previewed)
    batch_act = _writing(SqliteVerbs.batch_act)
    batch_step = _writing(SqliteVerbs.batch_step)
    batch_stop = _writing(SqliteVerbs.batch_stop)
    target_conflict = _writing(SqliteVerbs.target_conflict)
    reconcile_begin = _writing(SqliteVerbs.reconcile_begin)
    reconcile_record = _writing(SqliteVerbs.reconcile_record)
    batch_prune = _writing(SqliteVerbs.batch_prune)
    batch_portion = _reading(SqliteVerbs.batch_portion)
    reconcile_due = _reading(SqliteVerbs.reconcile_due)
    batch_get = _reading(SqliteVerbs.batch_get)
    batch_list = _reading(SqliteVerbs.batch_list)
    target_list = _reading(SqliteVerbs.target_list)
    mismatch_list = _reading(SqliteVerbs.mismatch_list)
    reconciliation_list = _reading(SqliteVerbs.reconciliation_list)
    pipeline_start = _writing(SqliteVerbs.pipeline_start)
    pipeline_fan_out = _writing(SqliteVerbs.pipeline_fan_out)
    page_store = _writing(SqliteVerbs.page_store)
    portion_take = _writing(SqliteVerbs.portion_take)
    portion_done = _writing(SqliteVerbs.portion_done)
    gone_take = _reading(SqliteVerbs.gone_take)
    gone_done = _writing(SqliteVerbs.gone_done)
    pipeline_complete = _writing(SqliteVerbs.pipeline_complete)
    pipeline_force = _writing(SqliteVerbs.pipeline_force)
    pipeline_retry = _writing(SqliteVerbs.pipeline_retry)
    pipeline_get = _reading(SqliteVerbs.pipeline_get)
    pipeline_list = _reading(SqliteVerbs.pipeline_list)
    partition_list = _reading(SqliteVerbs.partition_list)
    watermark_list = _reading(SqliteVerbs.watermark_list)
    pipeline_prune = _writing(SqliteVerbs.pipeline_prune)
