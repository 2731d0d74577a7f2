"""The same application in little room."""

from __future__ import annotations

import resource

from tests.processes.tasks import make_app

ROOM = 3 * 2**30
resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))

app = make_app()
