"""`detent worker --metrics-port`: the metrics of a worker over HTTP, from its supervisor."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer

from detent.model.clock import Clock
from detent.store.contract import Store
from detent.telemetry.exposition import encode_metrics
from detent.telemetry.samples import Samples
from detent.telemetry.shared_metrics import SharedMetrics
from detent.worker.critical_thread import start_critical_thread
from detent.worker.options import WorkerOptions
from detent.worker.supervisor.board import COMMIT_BOUNDS
from detent.worker.supervisor.process_counts import ProcessCounts

__all__ = ["serve_metrics"]

log = logging.getLogger("detent.worker")

_REQUEST_SECONDS_MAX = 5.0
_LOCAL = ("localhost", "127.0.0.1", "::1")


def serve_metrics(
    options: WorkerOptions, store: Store, clock: Clock, count: Callable[[], ProcessCounts]
) -> MetricsServer:
    """Serve metrics on a thread until the process ends. Requests are answered one after another."""
    shared = SharedMetrics(lambda: store, clock) if options.metrics_all else None

    def read() -> Samples:
        found = _process_samples(count(), options)
        if shared is not None:
            found.add_all(shared.read())
        return found

    assert options.metrics_port is not None
    server = MetricsServer((options.metrics_host, options.metrics_port), read)
    start_critical_thread("metrics", server.serve_forever)
    host = f"[{options.metrics_host}]" if ":" in options.metrics_host else options.metrics_host
    log.info("Metrics: http://%s:%d/metrics", host, server.server_address[1])
    return server


class MetricsServer(HTTPServer):
    """Listens on one address. `read` gives the metrics."""

    def __init__(self, address: tuple[str, int], read: Callable[[], Samples]) -> None:
        self.read = read
        self.is_local = ipaddress.ip_address(address[0]).is_loopback
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)


class _Handler(BaseHTTPRequestHandler):
    """Answers `GET /metrics`."""

    server: MetricsServer
    timeout = _REQUEST_SECONDS_MAX
    server_version = "detent"
    sys_version = ""

    def do_GET(self) -> None:
        # A page of another site must not read the metrics of this machine by a name that leads here.
        name = self.headers.get("host", "").rpartition(":")[0] or self.headers.get("host", "")
        if self.server.is_local and name.strip("[]").lower() not in _LOCAL:
            self._answer(403, b"the Host header names another machine\n", "text/plain; charset=utf-8")
        elif self.path.partition("?")[0] != "/metrics":
            self._answer(404, b"the metrics are at /metrics\n", "text/plain; charset=utf-8")
        else:
            self._answer(200, *encode_metrics(self.headers.get("accept", ""), self.server.read))

    def _answer(self, status: int, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log requests only for debugging."""
        log.debug(format, *args)


def _process_samples(counts: ProcessCounts, options: WorkerOptions) -> Samples:
    found = Samples()
    found.add("detent_process_claims_total", counts.counters.claims)
    found.add("detent_process_claimed_jobs_total", counts.counters.claimed)
    found.add("detent_process_active_jobs", counts.active)
    found.add("detent_process_slots", options.slots * options.processes)
    found.add("detent_process_children", counts.children)
    for outcome, number in counts.tally.items():
        found.add("detent_process_outcomes_total", number, outcome)
    found.add("detent_process_written_total", counts.counters.written)
    commits = found.histogram("detent_process_commit_seconds")
    for bound, number in zip((0.0, *COMMIT_BOUNDS), counts.counters.commits, strict=True):
        commits.add(bound, number, 0.0)
    commits.seconds = counts.counters.commit_micros / 1e6
    return found
