"""Admits callers by their tokens, and slows down clients that guess."""

from __future__ import annotations

from starlette.responses import Response
from starlette.types import Scope

from detent.http.callers import Caller, Callers
from detent.http.failed_logins import FailedLogins
from detent.http.problems import refuse
from detent.model.token_records import hash_token

__all__ = ["Admission", "token_required"]

_TOKEN_MAX = 200


class Admission:
    """Checks tokens. Failures count by client address."""

    def __init__(self, callers: Callers) -> None:
        self.callers = callers
        self._failed = FailedLogins()

    async def admit(self, scope: Scope, token: str) -> Caller | Response:
        """Return the caller with this token, or the refusal."""
        address = (scope.get("client") or ("",))[0]
        token_hash = hash_token(token[:_TOKEN_MAX])
        wait = self._failed.seconds_to_wait(address)
        if wait and not self.callers.is_known(token_hash):
            answer = refuse(429, f"too many tokens that are not valid came from {address}; try again in {wait} s")
            answer.headers["Retry-After"] = str(wait)
            return answer
        caller = await self.callers.find(token_hash)
        if caller is None:
            self._failed.note(address, token_hash)
            return token_required("the token is unknown, expired or revoked")
        return caller


def token_required(detail: str) -> Response:
    """Return the answer to a request whose token is missing or not valid."""
    answer = refuse(401, f"{detail}. Create a token with `detent tokens create`")
    answer.headers["WWW-Authenticate"] = 'Bearer realm="detent"'
    return answer
