"""A mixed life: jobs that have met everything that can happen to a job, each under its own name."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, get_args

from detent.model.alert_records import Route
from detent.model.batch_records import BatchRunRow
from detent.model.json_codec import fingerprint
from detent.model.limit_records import NewLimit
from detent.model.ops_records import NewOpsRun, OpsEnd
from detent.model.records import Abort, Claimed, Commit, Finish, NewEvent, NewJob
from detent.model.service_records import NewOperation, NewSchedule, TaskTimes
from detent.model.workflow_records import NewUndo
from detent.store.contract import Store
from detent.testing.stores import StoreClock
from tests.contract.alerts.sample_policies import policy
from tests.contract.batches.sample_batch_runs import APPLY, NUMBERS, act, drive, previewed_run, work
from tests.contract.graphs.sample_graphs import new_graph
from tests.contract.jobs.sample_jobs import abort, claim
from tests.contract.pipelines.sample_pipeline_runs import completed
from tests.contract.workflows.sample_workflows import children, look, park, send, signal, spawn, step

HOUR = 3600.0


class Life:
    """Jobs by name; each has a task of its own, so that a claim takes exactly the one that is meant."""

    def __init__(self, store: Store, clock: StoreClock, ids: dict[str, int]) -> None:
        self.store = store
        self.clock = clock
        self.ids = dict(ids)

    def __getitem__(self, name: str) -> int:
        return self.ids[name]

    def enqueue(self, name: str, **overrides: Any) -> int:
        job_id = self.store.ids_reserve(1)
        fields: dict[str, Any] = {"payload": "{}", "nonce": 1, "fingerprint": fingerprint(name, "{}")} | overrides
        (answer,) = self.store.job_enqueue([NewJob(id=job_id, task=name, **fields)])
        assert not isinstance(answer, Exception), answer
        self.ids[name] = job_id
        self.clock.advance(1)
        return job_id

    def claim(self, name: str, lease: float = HOUR) -> Claimed:
        lease_id = self.store.ids_reserve(1)
        (held,) = self.store.job_claim(lease_id=lease_id, worker="ana", queues=None, tasks=[name], limit=1, lease=lease)
        self.clock.advance(1)
        return held

    def abort(self, name: str, outcome: Any, **overrides: Any) -> None:
        held = self.claim(name)
        self.store.job_start([(held.job_id, held.attempt)])
        self.clock.advance(1)
        self.give(
            self.store.job_abort([Abort(job_id=held.job_id, attempt=held.attempt, outcome=outcome, **overrides)], "ana")
        )

    def give(self, answers: Any) -> None:
        """Every answer is a yes, and time goes on."""
        assert not [answer for answer in answers if isinstance(answer, Exception)], answers
        self.clock.advance(1)


def live(store: Store, clock: StoreClock) -> Life:
    """A database in which every kind of job has a name."""
    life = Life(store, clock, {})
    pruned = life.enqueue("pruned")
    life.give(store.job_finish([Finish(pruned, life.claim("pruned").attempt)], "ana"))
    assert store.job_prune(clock.now(), None, 100, "ana").jobs == 1
    _waiting_ones(life)
    _ops_runs(life)
    _batch_run(life)
    store.ids_reserve(next(NUMBERS))  # above those that the batch run has taken without asking
    life.ids["pipeline_run"] = completed(store, {"a": "1", "b": "2"}).id
    clock.advance(1)
    _services(life)
    _workflows(life)
    _graph(life)
    _running_ones(life)
    _finished_ones(life)
    return life


def _waiting_ones(life: Life) -> None:
    store, clock = life.store, life.clock
    life.enqueue("ready", priority=3, expires_at=clock.now() + timedelta(days=9))
    life.enqueue("later", due_at=clock.now() + timedelta(days=1))
    life.enqueue("held", key="held", unique_pending=True)
    life.enqueue("let_go", key="let_go", unique_pending=True)
    life.abort("let_go", "error", error="{}", delay=HOUR)
    life.enqueue("returned")
    life.abort("returned", "error", error="{}")
    life.enqueue("released")
    life.abort("released", "released")
    life.enqueue("expired_once")
    life.claim("expired_once", lease=1)
    clock.advance(2)
    assert store.lease_reap(100).aborted == (life["expired_once"],)
    life.enqueue("retried")
    life.abort("retried", "error", error="{}", fatal=True)
    life.give(store.job_retry([life["retried"]], "ana", "once more"))


def _ops_runs(life: Life) -> None:
    """One that ended in each way, and one that waits."""
    store = life.store
    for state in (*get_args(OpsEnd), "stale", "stalled", "queued"):
        job_id = life.ids["ops_run"] = store.ids_reserve(1)
        life.give([store.ops_queue(NewOpsRun(id=job_id, nonce=1, project_id="shop", env="staging"))])
        if state == "queued":
            break
        held = store.ops_claim(store.ids_reserve(1), "bob")
        assert held is not None
        assert held.job_id == job_id
        if state != "stale":
            life.give([store.ops_append(job_id, "info", "building", token=held.token)])
        if state in ("stale", "stalled"):
            life.clock.advance(601)
            assert store.lease_reap(100).aborted == (job_id,)
        else:
            life.give([store.ops_finish(job_id, state, "{}", "bob", token=held.token)])


def _batch_run(life: Life) -> None:
    """One that is partial: its first target needed two attempts, its second failed."""
    made = previewed_run(life.store)
    life.ids["batch_run"] = made.id
    assert isinstance(act(life.store, made.id), BatchRunRow)
    drive(life.store)
    life.clock.advance(1)
    abort(life.store, claim(life.store, tasks=[APPLY], limit=1)[0])
    work(life.store, fails=["b"])
    life.clock.advance(1)


def _services(life: Life) -> None:
    """A schedule, a limit, an alert that a sink was told of, an operation that is done, times of a queue and a task."""
    store, clock = life.store, life.clock
    store.schedule_put(
        NewSchedule(
            name="nightly",
            cron="0 3 * * *",
            zone="UTC",
            catch_up="latest",
            next_at=clock.now() + timedelta(days=1),
            task="report",
            payload="{}",
            queue="default",
            attempts_max=4,
        )
    )
    store.limit_put(NewLimit(key="shop", rate=5.0, per=1.0, burst=5.0, concurrency_max=2, tasks=("limited",)))
    life.enqueue("limited")
    life.claim("limited")
    store.alert_policy_put(policy(), "ana")
    store.alert_raise("dead_letters", "whole", "warning", "60 jobs are dead", None, 60.0)
    store.alert_spread([Route("log", ("warning",))])
    operation = NewOperation(id=store.ids_reserve(1), action="retry", actor="ana", job_state="quarantined", task="none")
    life.ids["operation"] = operation.id
    store.operation_start(operation)
    store.operation_step(operation.id, 100)
    store.recovery_set("mail", 60.0, 600.0, "ana")
    store.task_times_put([TaskTimes(task="summary", result_ttl=60.0)])
    store.declaration_put("schedule", "nightly", "f1", False)
    clock.advance(1)


def _workflows(life: Life) -> None:
    """One that has taken a signal and is parked until its children end, of which one is dead; one that was woken."""
    store = life.store
    life.enqueue("flow")
    held = life.claim("flow")
    life.give(store.step_begin([step(held, "pay")]))
    life.give(store.step_record([step(held, "pay"), step(held, "sleep", kind="sleep")]))
    life.give([send(store, held.job_id, "go"), send(store, held.job_id, "stop")])
    life.give([look(store, held, signal("go"))])
    life.ids["flow_child"] = first = store.ids_reserve(3)
    made = [NewJob(id=first + n, task="flow_child", payload="{}", nonce=1, fingerprint="") for n in range(3)]
    life.give([spawn(store, held, 3, jobs=made, first_id=first)])
    life.give([park(store, held, children("kids"))])
    done = life.claim("flow_child")
    life.give(store.job_finish([Finish(done.job_id, done.attempt)], "ana"))
    life.abort("flow_child", "error", error="{}", fatal=True)
    life.enqueue("woken")
    held = life.claim("woken")
    life.give([park(store, held, signal("go"))])
    life.give([send(store, held.job_id, "go")])
    life.enqueue("bought")
    held = life.claim("bought")
    life.give(store.step_record([step(held, name, seq=n, undo=True) for n, name in enumerate(("a", "b"), start=1)]))
    life.give(store.job_finish([Finish(held.job_id, held.attempt)], "ana"))
    life.ids["undo"] = undo = store.ids_reserve(1)
    life.give([store.undo_start(NewUndo(job_id=held.job_id, id=undo, nonce=1, cause="ana"))])
    held = life.claim("bought")
    undos = [step(held, path, seq=n, kind="undo") for n, path in enumerate(("b~undo", "a~undo", "~undone"), start=3)]
    life.give(store.step_record(undos))
    life.give(store.job_finish([Finish(held.job_id, held.attempt)], "ana"))


def _graph(life: Life) -> None:
    """A graph: the node `a` has succeeded, `b` is ready, and `c` waits for it."""
    store = life.store
    item = new_graph(store, {"a": "", "b": "a", "c": "b ~a"}, task="node")
    life.give([store.graph_start(item)])
    life.ids |= {"graph": item.job.id} | {f"node {one.name}": one.job.id for one in item.nodes}
    done = life.claim("node")
    life.give(store.job_finish([Finish(done.job_id, done.attempt)], "ana"))


def _running_ones(life: Life) -> None:
    store = life.store
    life.enqueue("running")
    life.claim("running")
    life.enqueue("asked_to_stop")
    life.claim("asked_to_stop")
    life.give(store.job_cancel([life["asked_to_stop"]], "ana", "enough"))
    life.enqueue("committed")
    held = life.claim("committed")
    life.give([store.job_commit(Commit(job_id=held.job_id, attempt=held.attempt))])


def _finished_ones(life: Life) -> None:
    store = life.store
    life.enqueue("succeeded")
    life.abort("succeeded", "error", error="{}")
    held = life.claim("succeeded")
    lines = [("one", None), ("two", "the key"), ("three", None)]
    life.give(
        store.event_append(
            [
                NewEvent(job_id=held.job_id, attempt=held.attempt, level="info", message=text, key=key)
                for text, key in lines
            ]
        )
    )
    life.give(store.job_finish([Finish(held.job_id, held.attempt, "1")], "ana"))
    life.enqueue("failed", dead_letter=False)
    life.abort("failed", "error", error="{}", fatal=True)
    life.enqueue("quarantined")
    life.abort("quarantined", "crashed", error="{}", fatal=True)
    life.enqueue("unknown", idempotent=False)
    life.abort("unknown", "crashed", error="{}")
    life.enqueue("cancelled")
    life.give(store.job_cancel([life["cancelled"]], "ana", "enough"))
    life.enqueue("stopped")
    stopped = life.claim("stopped")
    life.give(store.job_cancel([life["stopped"]], "ana", "enough"))
    life.give(store.job_abort([Abort(job_id=stopped.job_id, attempt=stopped.attempt, outcome="cancelled")], "ana"))
    life.enqueue("discarded")
    life.abort("discarded", "error", error="{}", fatal=True)
    life.give(store.job_discard([life["discarded"]], "ana", "enough"))
    life.enqueue("forced")
    life.abort("forced", "error", error="{}", fatal=True)
    life.give([store.job_force(life["forced"], "succeeded", "ana", "it has happened")])
    life.enqueue("set_aside")
    life.give([store.job_force(life["set_aside"], "quarantined", "ana", "not now")])
    store.queue_pause("mail", "ana", "holiday")
