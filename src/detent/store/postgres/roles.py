"""Optional group roles. A login may call the verbs of the roles that it is granted."""

from __future__ import annotations

from detent.store.contract import CATALOGUE

__all__ = ["ARE_THERE", "INCLUDES", "roles_sql"]

INCLUDES = {
    "viewer": ("viewer",),
    "client": ("viewer", "client"),
    "worker": ("viewer", "client", "worker"),
    "admin": ("viewer", "client", "worker", "admin"),
}
"""Whose verbs each role may call: its own, and those of the roles below it."""

# Functions that are no verbs of the catalogue but are called from Python: parts of verbs, the version check of `ready`,
# commit blocks, waiters.
BESIDE = {
    "lanes_make": "client",
    "job_enqueue_one": "client",
    "migrations": "viewer",
    "installed": "viewer",
    "agenda": "worker",
    "commit_check": "worker",
    "job_mark": "worker",
    "fire_stands_for": "worker",
    "batch_holds": "worker",
    "batch_lock": "client",
    "batch_hold": "client",
    "batch_action": "client",
    "batch_chosen": "worker",
    "target_places": "worker",
    "target_named": "client",
    "target_take": "worker",
    "reconcile_open": "client",
    "wake_announce": "worker",
    "up_for": "worker",
    "step_record_one": "worker",
    "signal_wake": "client",
}
VIEWS = ("executions", "queue_backlog", "transition")

ARE_THERE = """
SELECT EXISTS (
  SELECT 1 FROM pg_roles r, pg_namespace n
   WHERE r.rolname = 'detent_viewer' AND n.nspname = 'detent' AND has_schema_privilege(r.oid, n.oid, 'USAGE'))
"""
"""Whether the roles have their rights in this database: the roles themselves belong to the whole server."""

_MAKE = """DO $$ BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'detent_{role}') THEN
    CREATE ROLE detent_{role} NOLOGIN;
  END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
  NULL; -- roles belong to the whole server: another database has created it meanwhile
END $$;
REVOKE ALL ON ALL TABLES IN SCHEMA detent FROM detent_{role};
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA detent FROM detent_{role};
GRANT USAGE ON SCHEMA detent TO detent_{role};
GRANT SELECT ON {views} TO detent_{role};"""

# The schema `ops`, if it is Detent's: every role may read, a client may queue and cancel, a worker may do the rest.
OPS_FUNCTIONS = {"queue_run": "client", "cancel_run": "client"} | dict.fromkeys(
    ("claim_next_run", "append_event", "renew_run", "finish_run"), "worker"
)
_OPS = """DO $$ DECLARE verb regprocedure; BEGIN
  IF obj_description(to_regnamespace('ops'), 'pg_namespace') LIKE 'Detent:%' THEN
    REVOKE ALL ON ALL TABLES IN SCHEMA ops FROM detent_{role};
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA ops FROM detent_{role};
    GRANT USAGE ON SCHEMA ops TO detent_{role};
    GRANT SELECT ON ops.runs, ops.run_events, ops.environments TO detent_{role};
    FOR verb IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = to_regnamespace('ops')
      AND p.proname = ANY (ARRAY[{verbs}]::text[]) LOOP
      EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO detent_{role}', verb);
    END LOOP;
  END IF;
END $$;"""

_GRANT = """DO $$ DECLARE verb regprocedure; BEGIN
  FOR verb IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = 'detent'::regnamespace
    AND regexp_replace(p.proname, '_v[0-9]+$', '') <> p.proname
    AND regexp_replace(p.proname, '_v[0-9]+$', '') IN ({verbs}) LOOP
    EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO detent_{role}', verb);
  END LOOP;
END $$;"""


def roles_sql() -> str:
    """Return the statements that create the roles and grant them exactly their rights. They may be run again; the owner
    of the schema runs them, with CREATEROLE."""
    views = ", ".join(f"detent.{view}" for view in VIEWS)
    of = {verb.name: str(verb.role) for verb in CATALOGUE.values()} | BESIDE
    parts = []
    for role, includes in INCLUDES.items():
        verbs = ", ".join(f"'{name}'" for name, least in of.items() if least in includes)
        of_ops = ", ".join(f"'{name}'" for name, least in OPS_FUNCTIONS.items() if least in includes)
        parts += [_MAKE.format(role=role, views=views), _GRANT.format(role=role, verbs=verbs)]
        parts.append(_OPS.format(role=role, verbs=of_ops))
    return "\n".join(parts) + "\n"
