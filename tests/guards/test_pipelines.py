"""Typed by hand: runs and partitions move as their lifecycles declare, and a watermark only with its run."""

from __future__ import annotations

import pytest

from detent.lifecycle.library import PARTITION, PIPELINE_RUN
from detent.store.contract import Store
from tests.contract.jobs.sample_jobs import abort, claim, finish
from tests.contract.pipelines.sample_pipeline_runs import (
    claim_of,
    completed,
    consolidating,
    fanned_out,
    page,
    partition,
    run_of,
    started,
)
from tests.guards.prompt import Prompt


def run_in(store: Store, state: str) -> int:
    """A run that came into this state in the ordinary way."""
    match state:
        case "created":
            run = started(store)
        case "workers_running":
            run = fanned_out(store)
        case "consolidation_triggered":
            run = fanned_out(store, [])
        case "consolidating":
            run, _ = consolidating(store, {"a": "1"})
        case "completed":
            run = completed(store, {"a": "1"})
        case "cancelled":
            run = fanned_out(store)
            store.pipeline_cancel(run.id, "ana", None)
        case _:
            run = fanned_out(store)
            abort(store, claim_of(store, "page"), error="boom", fatal=True)
            if state == "failed":
                finish(store, claim_of(store, "skipped"))
    assert run_of(store, run.id).state == state
    return run.id


def partition_in(store: Store, state: str) -> int:
    """The run of a partition that came into this state in the ordinary way; its run goes on."""
    run = fanned_out(store, ["a", "b"])
    if state != "pending":
        held, _ = claim(store, tasks=["detent.pipeline.page/p"])
        if state in ("fetching_pages", "completed"):
            store.page_store(page(run.id, held, next_offset=None if state == "completed" else "1"))
        if state == "completed":
            finish(store, held)
        if state == "failed":
            abort(store, held, error="boom", fatal=True)
    assert partition(store, run.id).state == state
    return run.id


def logged(run_id: int, source: str, target: str, prompt: Prompt) -> str:
    return (
        "INSERT INTO {transition_log} (entity, entity_id, from_state, to_state, trigger, actor, at) "
        f"VALUES ('pipeline_run', '{run_id}', '{source}', '{target}', 'move', 'me', {prompt.now()})"
    )


@pytest.mark.parametrize("source", PIPELINE_RUN.states)
def test_a_run_moves_as_declared_and_on_record(store: Store, prompt: Prompt, source: str) -> None:
    """L2, P1: every pair of states, dressed as well as can be: what is not declared is refused, and what is declared
    too without its line in the log."""
    run_id = run_in(store, source)
    for target in (state for state in PIPELINE_RUN.states if state != source):
        ended = prompt.now() if target in PIPELINE_RUN.final else "NULL"
        change = (
            f"UPDATE {{pipeline_run}} SET state = '{target}', finished_at = {ended}, parts_ended = partitions "
            f"WHERE id = {run_id}"
        )
        if (source, target) in PIPELINE_RUN.pairs:
            assert "DT041" in prompt.refuses(change)
        else:
            assert "DT002" in prompt.refuses(logged(run_id, source, target, prompt), change)
    assert run_of(store, run_id).state == source


@pytest.mark.parametrize("source", PARTITION.states)
def test_a_partition_moves_as_declared(store: Store, prompt: Prompt, source: str) -> None:
    """L2, P2: every pair of states; one that has ended keeps its pages too."""
    run_id = partition_in(store, source)
    for target in (state for state in PARTITION.states if state != source):
        if (source, target) not in PARTITION.pairs:
            ended = prompt.now() if target in PARTITION.final else "NULL"
            change = f"UPDATE {{partition}} SET state = '{target}', ended_at = {ended}"
            assert "DT002" in prompt.refuses(f"{change} WHERE run_id = {run_id} AND n = 1")
    if source in PARTITION.final:
        prompt.refuses(f"UPDATE {{partition}} SET next_offset = '9' WHERE run_id = {run_id} AND n = 1")
    prompt.refuses(f"UPDATE {{partition}} SET job_id = 1 WHERE run_id = {run_id} AND n = 1")


def test_completed_needs_its_last_page(store: Store, prompt: Prompt) -> None:
    """P2: whoever says otherwise."""
    run_id = partition_in(store, "fetching_pages")
    prompt.refuses(
        f"UPDATE {{partition}} SET state = 'completed', ended_at = {prompt.now()} WHERE run_id = {run_id} AND n = 1"
    )


def test_what_a_run_was_started_for_is_written_once(store: Store, prompt: Prompt) -> None:
    """P5: above all the time it captured."""
    run_id = run_in(store, "created")
    later = prompt.later("captured_at")
    for change in (f"captured_at = {later}", "watermark = 'x'", "payload = 'null'", "id = id + 1"):
        assert "DT041" in prompt.refuses(f"UPDATE {{pipeline_run}} SET {change} WHERE id = {run_id}")
    prompt.refuses(f"DELETE FROM {{pipeline_run}} WHERE id = {run_id}")


def test_a_watermark_moves_with_a_completed_run_alone(store: Store, prompt: Prompt) -> None:
    """P5: not by hand, not backward, not to another time, not away."""
    prompt.refuses(f"INSERT INTO {{watermark}} VALUES ('', 'w', {prompt.now()}, 1, {prompt.now()})")
    run_id = run_in(store, "completed")
    for change in (
        f"UPDATE {{watermark}} SET value = {prompt.later('value')}",
        f"UPDATE {{watermark}} SET value = {prompt.now()}",
        "UPDATE {watermark} SET run_id = run_id + 1",
        "UPDATE {watermark} SET name = 'v'",
        "DELETE FROM {watermark}",
    ):
        assert "DT041" in prompt.refuses(change)
    (mark,) = store.watermark_list()
    assert mark.run_id == run_id
