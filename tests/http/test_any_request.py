"""Requests that are made from the description, as each role: nothing answers 5xx, and no answer is outside of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from detent import Detent
from detent.http.api import build_api
from detent.model.token_records import Role
from tests.http.applications import declare_tasks

EACH = {False: 2, True: 50}
"""Requests for each path, in `make test` and in `make faults`."""


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_answers_are_as_described(sqlite_store_url: str, role: Role, pytestconfig: pytest.Config) -> None:
    """U3: the description does not know every rule, so a request that fits it may still be refused with 422."""
    # Imported here, since it takes two seconds in every process that collects tests.
    import schemathesis
    from schemathesis.core.result import Ok
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    app = declare_tasks(Detent(sqlite_store_url))
    headers = {"Authorization": f"Bearer {app.tokens.create('any', role=role).token}", "Host": "localhost"}
    description = schemathesis.openapi.from_asgi("/api/v1/openapi.json", build_api(app), headers=headers)
    asked = 0
    for found in description.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()

        @settings(
            max_examples=EACH[bool(pytestconfig.getoption("--whole"))],
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            phases=[Phase.generate],
            derandomize=True,
        )
        @given(case=operation.as_strategy())
        def check(case: schemathesis.Case[Any]) -> None:
            nonlocal asked
            answer = case.call(headers=headers)
            assert answer.status_code < 500, answer.text
            case.validate_response(answer, excluded_checks=[positive_data_acceptance])
            asked += 1

        check()
    app.close()
    assert asked > 100
