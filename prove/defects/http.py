"""Defects of the HTTP server, and the tests that must find them."""

from __future__ import annotations

from prove.defects.defect import Defect, Edit
from prove.defects.proofs import tests

__all__ = ["HTTP"]

_CHECKS = "http/request_checks.py"
_AUTHENTICATION = "http/authentication.py"
_CALLERS = "http/callers.py"


def _defect(name: str, what: str, edit: Edit, *found_by: str) -> Defect:
    return Defect(name, "HTTP", what, (edit,), tests(*(f"http/{test}" for test in found_by)))


HTTP = (
    _defect(
        "any host",
        "requests under a foreign host name are answered",
        Edit(_CHECKS, "if _name(host) not in self._hosts:", "if False:"),
        "test_sessions.py::test_no_foreign_host_is_answered[sqlite]",
    ),
    _defect(
        "any origin",
        "a page of another origin may change things",
        Edit(_CHECKS, 'if scope["method"] not in _SAFE and (origin :=', "if False and (origin :="),
        "test_sessions.py::test_no_other_page_changes_anything_with_the_cookie[sqlite-headers3-False]",
    ),
    _defect(
        "bodies of any length",
        "a body may be longer than allowed",
        Edit("http/request_body.py", "if size > size_max:", "if False:"),
        "test_sessions.py::test_requests_that_are_too_long_or_too_deep[sqlite]",
    ),
    _defect(
        "queries of any length",
        "queries and headers may be longer than allowed",
        Edit(_CHECKS, "if (too_long := _too_long(scope)) is not None:", "if (too_long := None) is not None:"),
        "test_sessions.py::test_requests_that_are_too_long_or_too_deep[sqlite]",
    ),
    _defect(
        "unlimited guesses",
        "a client may guess tokens as often as it likes",
        Edit("http/admission.py", "if wait and not self.callers.is_known(token_hash):", "if False:"),
        "test_sessions.py::test_failed_tokens_are_limited_by_address[sqlite]",
    ),
    _defect(
        "through a proxy",
        "a request that a proxy forwarded needs no token",
        Edit(_AUTHENTICATION, "if any(name in headers for name in _FORWARDED):", "if False:"),
        "test_sessions.py::test_a_request_that_a_proxy_forwarded_needs_a_token[sqlite]",
    ),
    _defect(
        "public data",
        "reading needs no token",
        Edit("http/public_paths.py", '_WITH_DATA = ("/api/", "/hooks/"', '_WITH_DATA = ("/hooks/"'),
        "test_permissions.py::test_only_these_paths_are_public",
    ),
    _defect(
        "every role",
        "the role of a token is not checked",
        Edit(
            _AUTHENTICATION,
            "if isinstance(found, Caller) and (refused := check_path(found, method, path)) is not None:",
            "if isinstance(found, Caller) and (refused := None) is not None:",
        ),
        "test_permissions.py::test_a_lower_role_is_refused[viewer]",
    ),
    _defect(
        "stale tokens",
        "a token that was revoked is remembered as valid",
        Edit(_CALLERS, "        self._known.clear()\n", "        pass\n"),
        "test_sessions.py::test_revoking_over_http_is_felt_at_once[sqlite]",
    ),
    _defect(
        "expired tokens",
        "a token that is remembered does not expire",
        Edit(
            _CALLERS,
            "if caller is None or (caller.expires_at is not None and caller.expires_at <= self.now()):",
            "if caller is None:",
        ),
        "test_sessions.py::test_a_session_ends_with_its_token[sqlite]",
    ),
    _defect(
        "cookie for scripts",
        "scripts can read the cookie of a session",
        Edit("http/session_cookie.py", "httponly=True,", "httponly=False,"),
        "test_sessions.py::test_a_session_from_login_to_logout[sqlite]",
    ),
)
