"""Planted corruption of workflows: steps, waits, signals and groups of children."""

from __future__ import annotations

from collections.abc import Callable

from tests.store.invariants.corruption import GHOST, corrupts
from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner


def row(entity: str, name: str = "flow", rest: str = "") -> Callable[[Owner, Life], tuple[str, str]]:
    """A row about the workflow of that name."""
    return lambda _, life: (entity, f"{life[name]}{rest}")


def of_nobody(entity: str, rest: str = "") -> Callable[[Owner, Life], tuple[str, str]]:
    """A row about a job that is not there."""
    return lambda *_: (entity, f"{GHOST}{rest}")


def a_step(life: Life, path: str, *, job: str = "flow", generation: int = 1, attempt: int = 1) -> str:
    """The statement for a step that nobody's verb recorded."""
    times = f"SELECT min(done_at) FROM {{workflow_step}} WHERE job_id = {life['flow']}"
    job_id = life[job] if job != "nobody" else GHOST
    return (
        "INSERT INTO {workflow_step} (job_id, generation, path, seq, kind, attempt, began_at, done_at, value) "
        f"VALUES ({job_id}, {generation}, '{path}', 9, 'sleep', {attempt}, ({times}), ({times}), '1')"
    )


@corrupts("pending_is_queued_once", row("job", "woken"), heals=True)
def woken_for_workers_of_another_version(owner: Owner, life: Life) -> None:
    owner.run(
        "INSERT INTO {lane} (id, queue, task, tenant, priority, version) "
        "SELECT l.id + 1000000, l.queue, l.task, l.tenant, l.priority, 9 FROM {lane} l "
        f"JOIN {{ready}} r ON r.lane_id = l.id WHERE r.job_id = {life['woken']}",
        f"UPDATE {{ready}} SET lane_id = lane_id + 1000000 WHERE job_id = {life['woken']}",
    )


@corrupts("pending_is_queued_once", row("job"), heals=True)
def parked_as_if_it_had_not_begun(owner: Owner, life: Life) -> None:
    place = f"SELECT lane_id FROM {{waiting}} WHERE job_id = {life['flow']}"
    unbegun = "SELECT id FROM {lane} WHERE task = 'flow' AND version = 0"
    assert owner.rows(unbegun) != owner.rows(place)
    owner.run(f"UPDATE {{waiting}} SET lane_id = ({unbegun}) WHERE job_id = {life['flow']}")


@corrupts("parked_workflow_waits", row("workflow"), heals=False)
def what_it_waits_for_is_lost(owner: Owner, life: Life) -> None:
    owner.plant(f"DELETE FROM {{workflow_wait}} WHERE job_id = {life['flow']}")


@corrupts("parked_workflow_waits", row("workflow", "woken"), heals=False)
def parked_by_an_attempt_that_never_was(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{workflow}} SET parked_attempt = 7 WHERE job_id = {life['woken']}")


@corrupts("steps_fit_their_workflow", row("workflow_step", rest="/pay"), heals=False)
def steps_of_a_workflow_that_has_not_begun(owner: Owner, life: Life) -> None:
    owner.plant(f"DELETE FROM {{workflow}} WHERE job_id = {life['flow']}")


@corrupts("steps_fit_their_workflow", row("workflow_step", rest="/later"), heals=False)
def a_step_of_a_generation_to_come(owner: Owner, life: Life) -> None:
    owner.plant(a_step(life, "later", generation=2))


@corrupts("steps_fit_their_workflow", row("workflow_step", rest="/later"), heals=False)
def a_step_of_an_attempt_to_come(owner: Owner, life: Life) -> None:
    owner.plant(a_step(life, "later", attempt=9))


@corrupts("steps_fit_their_workflow", row("workflow_step", rest="/later"), heals=False)
def a_copy_of_nothing(owner: Owner, life: Life) -> None:
    owner.plant(a_step(life, "later", attempt=0))


@corrupts("steps_fit_their_workflow", row("workflow_step", rest="/w"), heals=False)
def a_step_after_the_commit(owner: Owner, life: Life) -> None:
    owner.plant(
        "UPDATE {execution} SET outcome = 'done', done_at = aborted_at, aborted_at = NULL, committed_at = aborted_at, "
        f"next_state = 'succeeded' WHERE job_id = {life['flow']}",
        f"UPDATE {{workflow_step}} SET attempt = 2 WHERE job_id = {life['flow']} AND path = 'w'",
        f"UPDATE {{job}} SET attempt = 2, ended = 2 WHERE id = {life['flow']}",
    )


@corrupts("taken_signals_were_sent", row("workflow_step", rest="/w"), heals=False)
def a_signal_that_is_lost(owner: Owner, life: Life) -> None:
    owner.plant(f"DELETE FROM {{workflow_signal}} WHERE job_id = {life['flow']} AND name = 'go'")


@corrupts("taken_signals_were_sent", row("workflow_step", rest="/w"), heals=False)
def a_signal_that_was_taken_before_it_was_sent(owner: Owner, life: Life) -> None:
    later = owner.seconds_after("sent_at", 3600)
    owner.plant(f"UPDATE {{workflow_signal}} SET sent_at = {later} WHERE job_id = {life['flow']} AND name = 'go'")


@corrupts("child_counts_equal_children", row("child_group", rest="/kids"), heals=True)
def a_child_that_is_counted_twice(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{child_group}} SET succeeded = 2 WHERE parent_id = {life['flow']}")


@corrupts("child_counts_equal_children", row("child_group", rest="/kids"), heals=True)
def a_dead_child_that_is_not_counted(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{child_group}} SET dead = 0 WHERE parent_id = {life['flow']}")


def the_signal(owner: Owner, life: Life) -> tuple[str, str]:
    seq = owner.value(f"SELECT seq FROM {{workflow_signal}} WHERE job_id = {life['flow']} AND name = 'go'")
    return "workflow_signal", f"{life['flow']}/{seq}"


def unread(owner: Owner, life: Life) -> tuple[str, str]:
    return "workflow_unread", the_signal(owner, life)[1]


@corrupts("unread_signals_are_listed", unread, heals=True)
def a_signal_that_is_unread_although_a_step_has_taken_it(owner: Owner, life: Life) -> None:
    owner.plant(
        "INSERT INTO {workflow_unread} (job_id, name, seq) SELECT job_id, name, seq FROM {workflow_signal} "
        f"WHERE job_id = {life['flow']} AND name = 'go'"
    )


@corrupts("unread_signals_are_listed", row("workflow_unread", rest="/5"), heals=True)
def an_unread_signal_that_no_wait_would_find(owner: Owner, life: Life) -> None:
    owner.plant(
        "INSERT INTO {workflow_signal} (job_id, name, seq, payload, actor, sent_at) "
        f"SELECT {life['flow']}, 'late', 5, '1', 'eve', max(sent_at) FROM {{workflow_signal}}",
        "DELETE FROM {workflow_unread} WHERE name = 'late'",
    )


@corrupts("rows_are_unique", the_signal, heals=False)
def a_signal_that_was_taken_twice(owner: Owner, life: Life) -> None:
    owner.drop_unique_index("workflow_step_takes_signal_once")
    owner.plant(
        a_step(life, "again"),
        f"UPDATE {{workflow_step}} SET signal_name = 'go', signal_seq = (SELECT signal_seq FROM {{workflow_step}} "
        f"WHERE job_id = {life['flow']} AND path = 'w') WHERE job_id = {life['flow']} AND path = 'again'",
    )


@corrupts("undos_follow_their_steps", row("workflow_step", "undo", "/b~undo"), heals=False)
def steps_that_were_undone_in_the_wrong_order(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{workflow_step}} SET seq = 9 WHERE job_id = {life['undo']} AND path = 'b~undo'")


@corrupts("undos_follow_their_steps", row("workflow_step", "undo", "/b~undo"), heals=False)
def an_undo_of_a_step_without_one(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{workflow_step}} SET undo = undo <> undo WHERE job_id = {life['bought']} AND path = 'b'")


@corrupts("undos_follow_their_steps", row("workflow_step", "undo", "/b~undo"), heals=False)
def an_undo_of_a_step_that_is_not_there(owner: Owner, life: Life) -> None:
    owner.plant(f"DELETE FROM {{workflow_step}} WHERE job_id = {life['bought']} AND path = 'b'")


@corrupts("undos_follow_their_steps", row("workflow", "undo"), heals=False)
def an_undo_that_its_job_does_not_name(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{workflow}} SET undone_by = NULL WHERE job_id = {life['bought']}")


@corrupts("undos_follow_their_steps", row("workflow", "flow"), heals=False)
def undone_by_a_job_that_undoes_another(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{workflow}} SET undone_by = {life['undo']} WHERE job_id = {life['flow']}")


@corrupts("no_row_is_orphaned", of_nobody("workflow"), heals=False)
def a_workflow_of_nobody(owner: Owner, life: Life) -> None:
    owner.plant(f"INSERT INTO {{workflow}} (job_id, version, root_id, depth) VALUES ({GHOST}, 1, {GHOST}, 0)")


@corrupts("no_row_is_orphaned", of_nobody("workflow_step", "/x"), heals=False)
def a_step_of_nobody(owner: Owner, life: Life) -> None:
    owner.plant(a_step(life, "x", job="nobody"))


@corrupts("no_row_is_orphaned", of_nobody("workflow_step_begun", "/x"), heals=False)
def a_begun_step_of_nobody(owner: Owner, life: Life) -> None:
    owner.plant(
        "INSERT INTO {workflow_step_begun} (job_id, generation, path, attempt, begun_at) "
        f"SELECT {GHOST}, 1, 'x', 1, begun_at FROM {{workflow_step_begun}}"
    )


@corrupts("no_row_is_orphaned", of_nobody("workflow_wait", "/0"), heals=False)
def a_wait_of_nobody(owner: Owner, life: Life) -> None:
    owner.plant(f"INSERT INTO {{workflow_wait}} (job_id, n, kind, name) VALUES ({GHOST}, 0, 'signal', 'go')")


@corrupts("no_row_is_orphaned", of_nobody("workflow_signal", "/1"), heals=False)
def a_signal_to_nobody(owner: Owner, life: Life) -> None:
    owner.plant(
        "INSERT INTO {workflow_signal} (job_id, name, seq, payload, actor, sent_at) "
        f"SELECT {GHOST}, 'go', 1, '1', 'eve', max(sent_at) FROM {{workflow_signal}}"
    )


@corrupts("no_row_is_orphaned", of_nobody("child_group", "/kids"), heals=False)
def a_group_of_nobody(owner: Owner, life: Life) -> None:
    owner.plant(
        "INSERT INTO {child_group} (parent_id, generation, path, first_id, total) "
        f"VALUES ({GHOST}, 1, 'kids', {GHOST + 1}, 1)"
    )


@corrupts("graph_follows_its_nodes", row("graph", "graph"), heals=True)
def a_node_that_its_graph_does_not_count(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{graph}} SET succeeded = 0 WHERE job_id = {life['graph']}")


@corrupts("graph_follows_its_nodes", row("graph_node", "node c"), heals=True)
def a_node_that_waits_for_more_than_there_is(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{graph_node}} SET blocked = 2 WHERE job_id = {life['node c']}")


@corrupts("graph_follows_its_nodes", row("graph_node", "node c"), heals=True)
def a_node_that_waits_for_nothing_and_never_starts(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{graph_node}} SET blocked = 0 WHERE job_id = {life['node c']}")


@corrupts("graph_follows_its_nodes", row("graph_node", "node a"), heals=True)
def a_node_whose_end_is_forgotten(owner: Owner, life: Life) -> None:
    owner.plant(f"UPDATE {{graph_node}} SET outcome = NULL WHERE job_id = {life['node a']}")


def the_end(owner: Owner, life: Life) -> tuple[str, str]:
    return "job_after", f"{life['node c']}/{life['node a']}"


@corrupts("graph_follows_its_nodes", the_end, heals=True)
def an_end_for_which_a_node_still_waits(owner: Owner, life: Life) -> None:
    where = f"job_id = {life['node c']} AND after_id = {life['node a']}"
    owner.plant(f"UPDATE {{job_after}} SET met = false WHERE {where}")


@corrupts("graph_has_its_nodes", row("graph"), heals=False)
def a_graph_without_nodes(owner: Owner, life: Life) -> None:
    owner.plant(f"INSERT INTO {{graph}} (job_id, name, total) VALUES ({life['flow']}, 'nightly', 2)")
