"""P14: requests, logins and deliveries of attackers, on both databases; and what the package depends on."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from dataclasses import replace
from random import Random

from detent.testing.harness import Harness
from prove.coverage import errors_counted
from prove.figure import Budget, Tally
from prove.hostile.world import declare_all
from prove.kills.scene import Kind, databases
from prove.security.database_roles import attack_database
from prove.security.dependencies import look_at_dependencies
from prove.security.outbound import attack_webhooks
from prove.security.requests import attack_server

__all__ = ["run"]

_KINDS: tuple[Kind, ...] = ("sqlite", "postgres")
_SHARES = {"commit": 0.15, "nightly": 1.0, "release": 1.0}
"""How much of the requests and statements is drawn."""


def run(budget: Budget) -> Tally:
    """Each attack has the part of the time that the ones before it leave."""
    tally = Tally()
    random = Random(budget.seed)
    logging.disable(logging.CRITICAL)  # the server logs what it refuses
    with errors_counted() as errors:
        look_at_dependencies(tally)
        with databases("postgres") as servers, databases("sqlite") as files:
            with next(servers) as url:
                with closing(Harness(url)) as harness:
                    app = harness.use(declare_all(harness.app))
                    job_id = app.enqueue_named("add", '{"a":1,"b":2}').id
                attack_database(url, job_id, _part(budget, 0.3), random, tally, _SHARES[budget.tier])
            for kind in _KINDS:
                with next(files if kind == "sqlite" else servers) as url:
                    attack_webhooks(url, _part(budget, 0.3), random, tally)
                with next(files if kind == "sqlite" else servers) as url:
                    attack_server(url, _part(budget, 0.6), random, tally, _SHARES[budget.tier])
    tally.covered.update(errors)
    return tally


def _part(budget: Budget, share: float) -> Budget:
    """Return a budget of a share of the time that is left."""
    left = max(0.0, budget.began_at + budget.seconds - time.monotonic())
    return replace(budget, seconds=left * share, began_at=time.monotonic())
