"""What each role may do, and what a token of one tenant reaches. All of it is decided here.

A role may do what the roles before it may: a viewer reads, an operator also changes, an admin may do everything. A
token with a tenant reaches the jobs, runs and watermarks of that tenant. What is not known to have one is refused.
"""

from __future__ import annotations

import re
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from detent.app.detent import Detent
from detent.client.job_verbs import check_id
from detent.errors import NotFound
from detent.http.callers import Caller, caller_of
from detent.http.verbs import Verb
from detent.model.records import Count
from detent.model.token_records import ROLES, Role

__all__ = ["check_call", "check_path", "check_request", "check_role", "keep_tenant", "role_needed"]

_ADMIN = {
    ("identities", "renew"), ("jobs", "force"), ("limits", "remove"), ("record", "repair"), ("runs", "force"),
    ("tokens", "create"), ("tokens", "list"), ("tokens", "revoke"),
}  # fmt: skip
_OPERATOR = {("record", "verify")}
"""Reads the whole database."""
_FOR_ALL_TENANTS = {("jobs", "counts"), ("workflows", "redeem")}
"""`keep_tenant` narrows the counts. The token of a signal is a right of its own, whoever brings it."""
_SAFE = ("GET", "HEAD", "OPTIONS")
_PATHS_OF_TENANTS = re.compile(
    r"/api/v1(/(openapi\.json|session|stream|(jobs|dead|runs|operations|watermarks|workflows)(/.*)?))?/?", re.DOTALL
)
"""What a token with a tenant reaches, as far as the path says so. The verbs themselves look closer."""


def role_needed(verb: Verb) -> Role:
    """Return the role that a verb needs."""
    named = (verb.noun, verb.name)
    if named in _ADMIN:
        return "admin"
    return "operator" if verb.changes or named in _OPERATOR else "viewer"


def check_path(caller: Caller, method: str, path: str) -> str | None:
    """Return why a request is refused before it reaches a route; None if it is not."""
    if method not in _SAFE and not _has(caller, "operator"):
        return _too_weak(caller, "operator")
    if caller.tenant is not None and not _PATHS_OF_TENANTS.fullmatch(path):
        return _other_tenants(caller)
    return None


def check_role(caller: Caller, verb: Verb) -> None:
    """Refuse a caller whose role is too weak for a verb."""
    if not _has(caller, role_needed(verb)):
        raise HTTPException(403, _too_weak(caller, role_needed(verb)))


def check_request(request: Request, role: Role, *, all_tenants: bool) -> Caller:
    """Return the caller of a request to a route that is no verb. Refuse one whose role is too weak, or, if the answer
    has `all_tenants` in it, whose token has a tenant."""
    caller = caller_of(request)
    if not _has(caller, role):
        raise HTTPException(403, _too_weak(caller, role))
    if all_tenants and caller.tenant is not None:
        raise HTTPException(403, _other_tenants(caller))
    return caller


def check_call(app: Detent, caller: Caller, verb: Verb, ids: dict[str, str], given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call, limited to the tenant of the caller. Refuse what the caller may not do; something
    of another tenant is `NotFound`."""
    if given.get("force") is True and not _has(caller, "admin"):
        raise HTTPException(403, _too_weak(caller, "admin"))
    if caller.tenant is None:
        return given
    if "job_id" in ids and verb.noun in ("jobs", "workflows"):
        _check_job(app, ids["job_id"], caller.tenant)
    elif "run_id" in ids and verb.noun == "runs":
        _check_run(app, ids["run_id"], caller.tenant)
    elif "operation_id" in ids and verb.noun == "operations":
        _check_operation(app, ids["operation_id"], caller.tenant)
    elif "tenant" in given and verb.noun in ("jobs", "dead", "runs", "watermarks", "workflows"):
        if given["tenant"] not in (None, "", caller.tenant):
            raise HTTPException(403, f"tenant {given['tenant']!r:.80}: {_other_tenants(caller)}")
        return given | {"tenant": caller.tenant}
    elif (verb.noun, verb.name) not in _FOR_ALL_TENANTS:
        raise HTTPException(403, _other_tenants(caller))
    return given


def keep_tenant(caller: Caller, found: Any) -> Any:
    """Return an answer without the counts of other tenants."""
    if caller.tenant is not None and isinstance(found, list) and any(isinstance(one, Count) for one in found):
        return [one for one in found if isinstance(one, Count) and one.tenant == caller.tenant]
    return found


def _has(caller: Caller, role: Role) -> bool:
    return ROLES.index(caller.role) >= ROLES.index(role)


def _too_weak(caller: Caller, role: Role) -> str:
    return f"this needs the role {role}, and the token {caller.name!r:.80} has the role {caller.role}"


def _other_tenants(caller: Caller) -> str:
    return f"the token {caller.name!r:.80} reaches the jobs, runs and watermarks of tenant {caller.tenant!r:.80} only"


def _check_job(app: Detent, text: str, tenant: str) -> None:
    number = check_id(text)
    (row,) = app.store.job_get([number])
    if row is None or row.tenant != tenant:
        raise NotFound("job", str(number))


def _check_run(app: Detent, text: str, tenant: str) -> None:
    number = check_id(text, "run id")
    row = app.store.batch_get(number) or app.store.pipeline_get(number)
    if row is None or row.tenant != tenant:
        raise NotFound("run", text)


def _check_operation(app: Detent, text: str, tenant: str) -> None:
    row = app.store.operation_get(check_id(text, "operation id"))
    if row is None or row.tenant != tenant:
        raise NotFound("operation", text)
