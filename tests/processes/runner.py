"""A worker from its options alone: what the command line does, with every option in reach."""

from __future__ import annotations

import logging
import os
import sys

import msgspec

from detent.model.clock import SystemClock
from detent.worker.child.application import load_app
from detent.worker.database_wait import wait_for_database
from detent.worker.log_limit import share_log_limit
from detent.worker.options import WorkerOptions
from detent.worker.supervisor.process import Supervisor
from detent.worker.supervisor.systemd_notifier import SystemdNotifier


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    options = share_log_limit(msgspec.json.decode(sys.argv[1], type=WorkerOptions))
    with load_app(options.app) as app:
        clock = SystemClock()
        (worker_id,), waited = wait_for_database(clock, app.ids.take)
        notify = SystemdNotifier(os.environ.get("NOTIFY_SOCKET"))
        return Supervisor(app.store, options, clock, worker_id, notify, after_outage=waited).run()


if __name__ == "__main__":
    sys.exit(main())
