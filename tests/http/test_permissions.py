"""Every route with every kind of token: what it may not do is refused, and nothing has changed.

The routes are those that the API has, so a new one is tried here without being listed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from detent import Detent
from detent.http.api import build_api
from detent.http.permissions import role_needed
from detent.http.public_paths import is_public
from detent.model.token_records import ROLES, Role
from detent.testing.harness import Harness
from prove.security.routes import (
    METHODS,
    OF_A_TENANT,
    REACHED_BY_A_TENANT,
    TRICKS,
    VERBS,
    arguments_for,
    path_of,
    routes_of,
)
from tests.http.applications import declare_tasks

NO_TOKEN: dict[str, str] = {}
WRONG = {"Authorization": "Bearer dtn_wrong"}


@dataclass(frozen=True)
class Secured:
    """An API that requires tokens, with something of tenants `acme` and `rival` in it."""

    app: Detent
    harness: Harness
    http: TestClient
    ids: dict[str, dict[str, str]]
    """By tenant: what stands in the place of an id in a path."""

    def token(self, name: str, role: Role, **more: Any) -> dict[str, str]:
        """Return the header of a new token."""
        return {"Authorization": f"Bearer {self.app.tokens.create(name, role=role, **more).token}"}


@pytest.fixture
def secured(sqlite_store_url: str) -> Iterator[Secured]:
    with closing(Harness(sqlite_store_url)) as harness:
        app = harness.use(declare_tasks(Detent(sqlite_store_url)))
        ids = {tenant: _fill(app, harness, tenant) for tenant in ("acme", "rival")}
        http = TestClient(build_api(app), base_url="http://localhost", raise_server_exceptions=False)
        yield Secured(app, harness, http, ids)


def _fill(app: Detent, harness: Harness, tenant: str) -> dict[str, str]:
    job = app.enqueue_named("add", '{"a":1,"b":2}', tenant=tenant, key="same")
    dead = app.enqueue_named("fail", "{}", tenant=tenant)
    run = app.runs.preview_named("reprice", '{"many":2}', tenant=tenant)
    harness.work()
    operation = app.jobs.where(state="quarantined", tenant=tenant, queue="nothing").retry()
    return {"job_id": str(job.id), "run_id": str(run.id), "operation_id": str(operation.id), "dead": str(dead.id)}


def test_every_route_needs_a_valid_token(secured: Secured) -> None:
    """S4: on every route and with every method: none, a wrong one, an expired one, a revoked one."""
    expired = secured.token("late", "admin", expires_in=60)
    secured.harness.clock.advance(61)
    revoked = secured.token("left", "admin")
    secured.app.tokens.revoke("left")
    before = _record(secured)
    paths = [path_of(template, secured.ids["acme"]) for template, _ in routes_of(secured.http.app)]
    wanted = [(method, path) for path in paths for method in METHODS if not is_public(method, path)]

    async def ask() -> None:
        transport = httpx2.ASGITransport(secured.http.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
            for headers in (NO_TOKEN, WRONG, expired, revoked):
                for method, path in wanted:
                    answer = await http.request(method, path, headers=headers)
                    assert answer.status_code == 401, (method, path, headers, answer.status_code)

    asyncio.run(ask())
    assert len(wanted) > 800
    assert _record(secured) == before


def test_only_these_paths_are_public(secured: Secured) -> None:
    """S4: deny by default. A route outside of `/api/` that has data must be added to `public_paths`."""
    public = {
        path for path, methods in routes_of(secured.http.app) for one in methods if is_public(one, path_of(path, {}))
    }
    assert public == {
        "/healthz",
        "/readyz",
        "/hooks/{name}",
        "/hooks/signals/{token}",
        "/api/v1/session",
        "/api/v1/session/end",
    }


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_a_lower_role_is_refused(secured: Secured, role: Role) -> None:
    """S4: with a sentence that names the role that is needed, before anything is read of the request."""
    bearer, before = secured.token("weak", role), _record(secured)
    for verb, method in VERBS:
        needed = role_needed(verb)
        if ROLES.index(needed) <= ROLES.index(role):
            continue
        path = path_of(f"/api/v1{verb.path}", secured.ids["acme"])
        answer = secured.http.request(method, path, headers=bearer, json={} if verb.changes else None)
        assert answer.status_code == 403, (path, answer.text)
        shown = "operator" if role == "viewer" and verb.changes else needed
        assert f"needs the role {shown}, and the token 'weak' has the role {role}" in answer.json()["detail"]
    assert _record(secured) == before


def test_what_each_role_may_do() -> None:
    """S4: changes need an operator; what cannot be undone, or makes others powerful, needs an admin."""
    admins = {f"{verb.noun} {verb.name}" for verb, _ in VERBS if role_needed(verb) == "admin"}
    assert admins == {
        "identities renew", "jobs force", "limits remove", "record repair", "runs force", "tokens create",
        "tokens list", "tokens revoke",
    }  # fmt: skip
    assert all(role_needed(verb) != "viewer" for verb, method in VERBS if method == "POST")


def test_a_token_of_a_tenant_reaches_nothing_else(secured: Secured) -> None:
    """S4: another tenant's job is not found; what has no tenant is refused; lists have only its own."""
    bearer, before = secured.token("acme-admin", "admin", tenant="acme"), _record(secured)
    rival = secured.ids["rival"]
    for verb, method in VERBS:
        path = path_of(f"/api/v1{verb.path}", rival)
        answer = secured.http.request(method, path, headers=bearer, json=arguments_for(verb) if verb.changes else None)
        if "{job_id}" in verb.path or "{run_id}" in verb.path or "{operation_id}" in verb.path:
            assert answer.status_code in (404, 422), (path, answer.text)
        elif verb.noun not in OF_A_TENANT:
            assert answer.status_code == 403, (path, answer.text)
            assert "tenant 'acme' only" in answer.json()["detail"]
        assert "rival" not in answer.text, (path, answer.text)
    assert [one for one in _record(secured) if "rival" in str(one)] == [one for one in before if "rival" in str(one)]
    own = tuple(f"/api/v1/{noun}" for noun in OF_A_TENANT)
    for path, _ in routes_of(secured.http.app):
        if not (path.startswith(own) or path in REACHED_BY_A_TENANT or is_public("GET", path)):
            answer = secured.http.get(path_of(path, rival), headers=bearer)
            assert answer.status_code == 403, (path, answer.text)


def test_what_a_token_of_a_tenant_does_is_of_its_tenant(secured: Secured) -> None:
    """S4: enqueue, lists, counts and bulk changes; naming another tenant is refused."""
    bearer, acme = secured.token("acme-ops", "operator", tenant="acme"), secured.ids["acme"]

    def get(path: str) -> Any:
        answer = secured.http.get(f"/api/v1/{path}", headers=bearer)
        assert answer.status_code == 200, answer.text
        return answer.json()

    # The key is the one of rival's job too, and must not reach it.
    made = secured.http.post(
        "/api/v1/jobs",
        json={"task": "add", "payload": {"a": 1, "b": 2}},
        headers=bearer | {"Idempotency-Key": "same"},
    )
    assert (made.status_code, made.json()["id"]) == (200, acme["job_id"])
    fresh = secured.http.post("/api/v1/jobs", json={"task": "add", "payload": {"a": 1, "b": 2}}, headers=bearer)
    assert get(f"jobs/{fresh.json()['id']}")["tenant"] == "acme"
    for noun in ("jobs", "dead", "runs"):
        found = get(noun)["items"]
        assert {one["tenant"] for one in found} == {"acme"}
    assert {one["tenant"] for one in get("jobs/counts")["items"]} == {"acme"}
    assert get(f"jobs/{acme['dead']}/why")["why"]
    counted = secured.http.post("/api/v1/jobs/bulk/retry?state=quarantined&dry_run=true", headers=bearer)
    assert counted.json()["jobs"] == 1
    begun = secured.http.post("/api/v1/jobs/bulk/retry?state=quarantined", headers=bearer).json()["operation"]
    secured.app.operations.get(begun["id"]).wait(timeout=60)
    assert get(f"operations/{begun['id']}")["changed"] == 1
    assert secured.app.jobs.get(secured.ids["rival"]["dead"]).state == "quarantined"
    for method, path, body in (
        ("GET", "jobs?tenant=rival", None),
        ("POST", "jobs/bulk/cancel?tenant=rival", {}),
        ("POST", "jobs", {"task": "add", "payload": {"a": 1, "b": 2}, "tenant": "rival"}),
        ("GET", "dead/report?tenant=rival", None),
        ("POST", "runs/preview", {"name": "reprice", "payload": {"many": 1}, "tenant": "rival"}),
    ):
        refused = secured.http.request(method, f"/api/v1/{path}", json=body, headers=bearer)
        assert (refused.status_code, "tenant 'acme' only" in refused.json()["detail"]) == (403, True), refused.text


def test_changes_are_on_record_under_the_name_of_the_token(secured: Secured) -> None:
    """S1"""
    bearer, job_id = secured.token("dashboard", "operator"), secured.ids["acme"]["dead"]
    answer = secured.http.post(f"/api/v1/jobs/{job_id}/retry", json={"reason": "mended"}, headers=bearer)
    assert answer.status_code == 200, answer.text
    last = secured.app.jobs.get(job_id).history()[-1]
    assert (last.actor, last.reason) == ("dashboard", "mended")


def test_forcing_a_pipeline_needs_an_admin(secured: Secured) -> None:
    """S4: `force` in the arguments of `start` is as strong as the verb `force`."""
    body = {"name": "stones", "force": True, "reason": "now"}
    refused = secured.http.post("/api/v1/runs/start", json=body, headers=secured.token("ops", "operator"))
    assert (refused.status_code, "needs the role admin" in refused.text) == (403, True)


@pytest.mark.parametrize("path", TRICKS)
def test_no_trick_with_the_path_gets_in(secured: Secured, path: str) -> None:
    """S4: a path is compared as the routes compare it, so nothing that needs a token answers without one."""
    for method in ("GET", "POST", "HEAD"):
        answer = secured.http.request(method, f"http://localhost{path}", follow_redirects=True)
        assert answer.status_code in (401, 404, 405, 400), (method, path, answer.status_code)
        assert "items" not in answer.text


def _record(secured: Secured) -> list[Any]:
    return [(one.entity, one.entity_id, one.trigger) for one in secured.app.record.search(limit=10_000)]


@pytest.mark.parametrize("task", ["reprice.apply", "reprice.stop", "detent.webhook"])
def test_jobs_of_batches_and_webhooks_are_enqueued_by_detent_only(secured: Secured, task: str) -> None:
    """A job of a batch names a run in its arguments, which may be of another tenant; one of a webhook is signed."""
    secured.app.notify("erp", "https://erp.example/hook", on=["job.failed"], secret="whsec_QUJDREVGR0hJSktMTU5PUFFS")
    arguments = {
        "reprice.apply": {"run": int(secured.ids["rival"]["run_id"]), "ref": "item-000", "before": 1, "after": 999},
        "reprice.stop": {"run": int(secured.ids["rival"]["run_id"])},
        "detent.webhook": {"target": "erp", "id": "msg_1", "event": {"type": "run.completed"}},
    }[task]
    own = secured.token("ana", "operator", tenant="acme")
    answer = secured.http.post("/api/v1/jobs", headers=own, json={"task": task, "payload": arguments})
    assert (answer.status_code, answer.json()["fields"]["field"]) == (422, "task"), answer.text
    schedule = {"cron": "* * * * *", "task": task, "payload": arguments}
    everywhere = secured.token("bea", "operator")
    assert secured.http.post("/api/v1/schedules/x/set", headers=everywhere, json=schedule).status_code == 422
    assert list(secured.app.jobs.list(task=task, key=None, state="pending")) == []
