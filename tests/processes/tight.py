"""The same application in little room."""

from __future__ import annotations

import resource
from pathlib import Path

from tests.processes.tasks import make_app

pages = int(Path("/proc/self/statm").read_text().split()[0])
ROOM = pages * resource.getpagesize() + 2**30
# Only the soft limit: a child inherits the hard one and could not set its own, which may be a little larger.
resource.setrlimit(resource.RLIMIT_AS, (ROOM, resource.getrlimit(resource.RLIMIT_AS)[1]))

app = make_app()
