"""More planted corruption: what an owner did to definitions, not to rows.

Importing this module adds its cases to `CASES`.
"""

from __future__ import annotations

from detent.lifecycle.library import JOB
from tests.store.invariants.corruption import corrupts
from tests.store.invariants.life import Life
from tests.store.invariants.owner import Owner


@corrupts("definitions_are_in_place", lambda owner, _: ("view", f"{owner.prefix}ops_runs"), heals=False)
def view_dropped(owner: Owner, life: Life) -> None:
    owner.run("DROP VIEW {ops_runs}" if owner.sqlite else "DROP VIEW {ops_runs} CASCADE")


@corrupts("definitions_are_in_place", lambda *_: ("view", "executions"), heals=False, only="postgres")
def view_that_tells_another_lease(owner: Owner, life: Life) -> None:
    """The same columns, and other values."""
    text = owner.value("SELECT pg_get_viewdef('detent.executions')")
    assert text.count("NULL::bigint AS lease_id") == 1
    changed = text.replace("NULL::bigint AS lease_id", "7::bigint AS lease_id")
    owner.run(f"CREATE OR REPLACE VIEW detent.executions AS {changed}")


@corrupts("definitions_are_in_place", lambda *_: ("view", "job_counts"), heals=False, only="postgres")
def view_without_some_rows(owner: Owner, life: Life) -> None:
    text = owner.value("SELECT pg_get_viewdef('detent.job_counts')").rstrip(";")
    owner.run(f"CREATE OR REPLACE VIEW detent.job_counts AS SELECT * FROM ({text}) c WHERE c.state <> 'failed'")


@corrupts("definitions_are_in_place", lambda owner, _: ("index", f"{owner.prefix}waiting_due"), heals=False)
def index_of_the_due_jobs_dropped(owner: Owner, life: Life) -> None:
    owner.run("DROP INDEX {waiting_due}")


@corrupts("definitions_are_in_place", lambda owner, _: ("index", f"{owner.prefix}lease_expiring"), heals=False)
def index_of_the_leases_dropped(owner: Owner, life: Life) -> None:
    owner.run("DROP INDEX {lease_expiring}")


@corrupts("definitions_are_in_place", lambda *_: ("strange_trigger", "event.eve"), heals=False)
def trigger_of_a_stranger(owner: Owner, life: Life) -> None:
    if owner.sqlite:
        owner.run("CREATE TRIGGER eve AFTER INSERT ON {event} BEGIN SELECT 1; END")
        return
    owner.run(
        "CREATE FUNCTION eve() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NEW; END $$",
        "CREATE TRIGGER eve AFTER INSERT ON {event} FOR EACH ROW EXECUTE FUNCTION eve()",
    )


def newest_horizon(owner: Owner, life: Life) -> tuple[str, str]:
    return "horizon", str(owner.value("SELECT max(n) FROM {horizon}"))


@corrupts("horizons_are_past", newest_horizon, heals=False)
def horizon_in_the_future(owner: Owner, life: Life) -> None:
    times = f"{owner.at('2999-01-01')}, 'eve', {owner.at('2026-01-01')}"
    owner.plant(f"INSERT INTO {{horizon}} (before, actor, at) VALUES ({times})")


# -- PostgreSQL ------------------------------------------------------------------------------------------------


@corrupts("constraints_are_in_place", lambda *_: ("constraint", "job_state_known"), heals=False, only="postgres")
def check_that_is_always_true(owner: Owner, life: Life) -> None:
    owner.run(
        "ALTER TABLE {job} DROP CONSTRAINT job_state_known",
        "ALTER TABLE {job} ADD CONSTRAINT job_state_known CHECK (true)",
    )


@corrupts("constraints_are_in_place", lambda *_: ("constraint", "job_state_known"), heals=False, only="postgres")
def check_that_knows_one_state_more(owner: Owner, life: Life) -> None:
    states = ", ".join(f"'{state}'" for state in [*JOB.states, "zombie"])
    owner.run(
        "ALTER TABLE {job} DROP CONSTRAINT job_state_known",
        f"ALTER TABLE {{job}} ADD CONSTRAINT job_state_known CHECK (state IN ({states}))",
    )


@corrupts("constraints_are_in_place", lambda *_: ("constraint", "job_attempts_in_order"), heals=False, only="postgres")
def check_that_is_not_valid(owner: Owner, life: Life) -> None:
    owner.plant(without=["job_attempts_in_order"])


@corrupts("constraints_are_in_place", lambda *_: ("index", "execution_one_commit"), heals=False, only="postgres")
def unique_index_over_something_else(owner: Owner, life: Life) -> None:
    owner.run(
        "DROP INDEX detent.execution_one_commit",
        "CREATE UNIQUE INDEX execution_one_commit ON {execution} (job_id, attempt) WHERE committed_at IS NOT NULL",
    )


@corrupts("definitions_are_in_place", lambda *_: ("index", "waiting_due"), heals=False, only="postgres")
def index_over_something_else(owner: Owner, life: Life) -> None:
    owner.run("DROP INDEX {waiting_due}", "CREATE INDEX waiting_due ON {waiting} (due_at)")


@corrupts("definitions_are_in_place", lambda *_: ("column", "schedule.unique_pending"), heals=False, only="postgres")
def default_changed(owner: Owner, life: Life) -> None:
    owner.run("ALTER TABLE {schedule} ALTER COLUMN unique_pending SET DEFAULT true")


@corrupts("definitions_are_in_place", lambda *_: ("column", "execution.worker"), heals=False, only="postgres")
def column_that_may_be_empty(owner: Owner, life: Life) -> None:
    owner.run("ALTER TABLE {execution} ALTER COLUMN worker DROP NOT NULL")


@corrupts("definitions_are_in_place", lambda *_: ("column", "alert.raised"), heals=False, only="postgres")
def column_of_another_type(owner: Owner, life: Life) -> None:
    owner.run("ALTER TABLE {alert} ALTER COLUMN raised TYPE smallint")


@corrupts("guards_are_in_place", lambda *_: ("trigger", "event_keep"), heals=True, only="postgres")
def guard_that_is_never_asked(owner: Owner, life: Life) -> None:
    ((text,),) = owner.rows("SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'event_keep'")
    owner.run("DROP TRIGGER event_keep ON {event}", text.replace("EXECUTE", "WHEN (1 = 2) EXECUTE"))


@corrupts("guards_are_in_place", lambda *_: ("trigger", "execution_keep"), heals=True, only="postgres")
def guard_switched_off(owner: Owner, life: Life) -> None:
    owner.run("ALTER TABLE {execution} DISABLE TRIGGER execution_keep")


@corrupts("guards_are_in_place", lambda *_: ("function", "keep"), heals=True, only="postgres")
def guard_emptied(owner: Owner, life: Life) -> None:
    owner.run("UPDATE pg_proc SET prosrc = ' BEGIN RETURN NEW; END ' WHERE proname = 'keep'")


@corrupts("guards_are_in_place", lambda *_: ("function", "duration_bucket"), heals=True, only="postgres")
def function_of_a_view_renamed(owner: Owner, life: Life) -> None:
    """The comparison of the views failed, and `verify` with it."""
    owner.run("ALTER FUNCTION detent.duration_bucket RENAME TO eve")


@corrupts("guards_are_in_place", lambda *_: ("function", "micros_between"), heals=True, only="postgres")
def function_of_a_view_emptied(owner: Owner, life: Life) -> None:
    owner.run("UPDATE pg_proc SET prosrc = 'SELECT 1::bigint' WHERE proname = 'micros_between'")


@corrupts("definitions_are_in_place", lambda *_: ("function", "job_force_v2"), heals=False, only="postgres")
def verb_emptied(owner: Owner, life: Life) -> None:
    owner.run("UPDATE pg_proc SET prosrc = ' BEGIN RETURN; END ' WHERE proname = 'job_force_v2'")


@corrupts("definitions_are_in_place", lambda *_: ("function", "job_prune_v1"), heals=False, only="postgres")
def verb_dropped(owner: Owner, life: Life) -> None:
    ((name,),) = owner.rows("SELECT oid::regprocedure::text FROM pg_proc WHERE proname = 'job_prune_v1'")
    owner.run(f"DROP FUNCTION {name}")


@corrupts("definitions_are_in_place", lambda *_: ("rule", "event.eve"), heals=False, only="postgres")
def rule_that_swallows_lines(owner: Owner, life: Life) -> None:
    owner.run("CREATE RULE eve AS ON INSERT TO {event} DO INSTEAD NOTHING")


@corrupts("definitions_are_in_place", lambda *_: ("row_security", "job"), heals=False, only="postgres")
def row_security(owner: Owner, life: Life) -> None:
    owner.run("ALTER TABLE {job} ENABLE ROW LEVEL SECURITY")


@corrupts("definitions_are_in_place", lambda *_: ("row_security", "transition_log"), heals=False, only="postgres")
def row_security_for_owners_too(owner: Owner, life: Life) -> None:
    owner.run("ALTER TABLE {transition_log} FORCE ROW LEVEL SECURITY")


@corrupts("storage_is_sound", lambda *_: ("table", "execution"), heals=False, only="postgres")
def record_that_a_crash_would_empty(owner: Owner, life: Life) -> None:
    owner.run("ALTER TABLE {execution} SET UNLOGGED")


@corrupts("storage_is_sound", lambda *_: ("index", "lease_expiring"), heals=False, only="postgres")
def index_that_no_query_uses(owner: Owner, life: Life) -> None:
    owner.run("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'detent.lease_expiring'::regclass")


# -- SQLite ----------------------------------------------------------------------------------------------------


@corrupts("definitions_are_in_place", lambda *_: ("view", "detent_executions"), heals=False, only="sqlite")
def view_changed(owner: Owner, life: Life) -> None:
    owner.rewrite_schema("detent_executions", "NULL AS lease_id", "7 AS lease_id")


@corrupts("definitions_are_in_place", lambda *_: ("index", "detent_waiting_due"), heals=False, only="sqlite")
def index_changed(owner: Owner, life: Life) -> None:
    owner.run("DROP INDEX detent_waiting_due", "CREATE INDEX detent_waiting_due ON {waiting} (due_at)")


@corrupts("constraints_are_in_place", lambda *_: ("table", "detent_execution"), heals=False, only="sqlite")
def check_edited_away(owner: Owner, life: Life) -> None:
    owner.rewrite_schema("detent_execution", "attempt >= 1", "TRUE")


@corrupts("constraints_are_in_place", lambda *_: ("table", "detent_dead"), heals=False, only="sqlite")
def type_edited(owner: Owner, life: Life) -> None:
    owner.rewrite_schema("detent_dead", "reason         TEXT", "reason         INTEGER")


@corrupts("constraints_are_in_place", lambda *_: ("table", "detent_execution"), heals=False, only="sqlite")
def column_edited_to_be_empty(owner: Owner, life: Life) -> None:
    owner.rewrite_schema("detent_execution", "worker       TEXT    NOT NULL", "worker       TEXT")


@corrupts("constraints_are_in_place", lambda *_: ("table", "detent_alert"), heals=False, only="sqlite")
def table_of_any_type(owner: Owner, life: Life) -> None:
    owner.rewrite_schema("detent_alert", "STRICT, WITHOUT ROWID", "WITHOUT ROWID")


@corrupts("guards_are_in_place", lambda *_: ("trigger", "detent_execution_keep"), heals=True, only="sqlite")
def guard_dropped_from_the_record(owner: Owner, life: Life) -> None:
    owner.run("DROP TRIGGER detent_execution_keep")


@corrupts("constraints_are_in_place", lambda *_: ("index", "detent_execution_one_commit"), heals=False, only="sqlite")
def unique_index_replaced(owner: Owner, life: Life) -> None:
    owner.run(
        "DROP INDEX detent_execution_one_commit",
        "CREATE UNIQUE INDEX detent_execution_one_commit ON {execution} (job_id, attempt)",
    )


@corrupts("guards_are_in_place", lambda *_: ("trigger", "detent_event_keep"), heals=True, only="sqlite")
def guard_that_does_nothing(owner: Owner, life: Life) -> None:
    owner.run(
        "DROP TRIGGER detent_event_keep",
        "CREATE TRIGGER detent_event_keep BEFORE UPDATE ON {event} BEGIN SELECT 1; END",
    )


@corrupts("storage_is_sound", lambda *_: ("file", "database"), heals=False, only="sqlite")
def index_that_has_lost_its_rows(owner: Owner, life: Life) -> None:
    """The index says that nothing expires: its page is that of an empty index."""
    owner.rewrite_schema("detent_lease_expiring", "", "", root_of="detent_alert_by_state")
