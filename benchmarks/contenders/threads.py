"""Inside a worker's child: the processor time of each of its threads, written down while it works. Linux only."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

__all__ = ["keep"]

EVERY = 0.05


def keep(path: Path) -> None:
    """From now on, in nanoseconds by the thread's name. Those of a pool are one."""

    def serve() -> None:
        beside = path.with_suffix(".new")
        while True:
            used: dict[str, int] = {}
            for thread in threading.enumerate():
                name = thread.name.rpartition("_")[0] or thread.name
                used[name] = used.get(name, 0) + spent(Path(f"/proc/self/task/{thread.native_id}"))
            beside.write_text(json.dumps(used))
            beside.replace(path)
            time.sleep(EVERY)

    threading.Thread(target=serve, name="measuring", daemon=True).start()


def spent(place: Path) -> int:
    """Nanoseconds on a processor of whoever has this place in /proc; none where it is gone."""
    try:
        return int((place / "schedstat").read_text().split()[0])
    except OSError:
        return 0
