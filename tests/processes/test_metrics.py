"""`detent worker --metrics-port`: what a worker shows of itself."""

from __future__ import annotations

import re
import urllib.error
import urllib.request

import pytest

from tests.processes.worker_processes import Bench, Worker, until
from tests.telemetry.readings import Reading, parse


def address(worker: Worker) -> str:
    found = until(lambda: re.findall(r"http://[^ ]+/metrics", worker.log), "the address")
    return str(found[0])


def scrape(url: str, host: str | None = None) -> Reading:
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return parse(answer.read().decode())


def test_a_worker_shows_what_it_does(bench: Bench) -> None:
    """M1: claims, jobs that run, commit latency; and with `metrics_all` those of the database."""
    gate = bench.gate()
    bench.send_many("add", 20, a=1, b=2)
    worker = bench.worker(metrics_port=0, metrics_all=True)
    url = address(worker)
    done = ("detent_process_outcomes_total", (("outcome", "succeeded"),))
    until(lambda: scrape(url).get(done) == 20, "20 jobs")
    found = scrape(url)
    assert found["detent_process_claimed_jobs_total", ()] == 20
    assert 1 <= found["detent_process_claims_total", ()] <= 20
    assert (found["detent_process_slots", ()], found["detent_process_children", ()]) == (4, 1)
    assert found["detent_process_written_total", ()] >= 20
    assert found["detent_process_commit_seconds_count", ()] >= 1
    assert found["detent_process_commit_seconds_sum", ()] > 0
    assert found["detent_database_up", ()] == 1
    bench.send("hold", gate=str(gate))
    gate.entered()
    assert scrape(url)["detent_process_active_jobs", ()] == 1
    with pytest.raises(urllib.error.HTTPError, match="403"):
        scrape(url, host="evil.example:80")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        scrape(url.replace("/metrics", "/other"))
    gate.open()
