"""Entry point of a supervisor: a process that holds none of the user's code and imports little else.

Run as `python -m detent.worker.supervisor PIPE_FD`, with an `Assignment` as JSON in the pipe.
"""

from __future__ import annotations

import os
import sys

import msgspec

from detent.model.clock import SystemClock
from detent.store.open import open_store
from detent.worker.log_limit import share_log_limit
from detent.worker.output import set_up_output
from detent.worker.supervisor.assignment import Assignment
from detent.worker.supervisor.process import Supervisor
from detent.worker.supervisor.systemd_notifier import SystemdNotifier


def main() -> int:
    """Supervise until told to stop; return the exit code."""
    with os.fdopen(int(sys.argv[1]), "rb") as pipe:
        assignment = msgspec.json.decode(pipe.read(), type=Assignment)
    options = assignment.options
    set_up_output(options.log_format, options.log_level, worker=options.name)
    clock = SystemClock()
    supervisor = Supervisor(
        open_store(assignment.url, clock=clock),
        share_log_limit(assignment.options),
        clock,
        assignment.worker_id,
        SystemdNotifier(assignment.notify_socket),
        after_outage=assignment.after_outage,
        sinks=assignment.sinks,
    )
    return supervisor.run()


if __name__ == "__main__":
    sys.exit(main())
