"""The story, told in under a minute: `python examples/reprice/demo.py [--database sqlite:///FILE]`.

Opens the shop, starts two workers, and takes ten percent off 32 rings: looks first, then leaps, tries again what
failed, looks whether it held, and goes back. What is shown is asked of Detent and of the shop's own books; where the
two do not agree the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from detent import Limit
from examples.reprice.shop import BROKEN, LYING, SILENT, Shop, serve

ROOT = Path(__file__).parents[2]
RINGS = 32
SECONDS_MAX = 240.0


def main() -> int:
    """Tell it; 0 where everything came as it should."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--database", metavar="URL")
    named = arguments.parse_args().database
    began_at = time.monotonic()
    with ExitStack() as exits:
        directory = Path(
            exits.enter_context(tempfile.TemporaryDirectory(prefix="reprice-", ignore_cleanup_errors=True))
        )
        shop = Shop(RINGS)
        server, address = serve(shop)
        exits.callback(server.shutdown)
        os.environ["SHOP_URL"] = address
        os.environ["DETENT_DATABASE_URL"] = named or f"sqlite:///{directory / 'reprice.db'}"
        # The application looks there when it is imported.
        from examples.reprice.reprice import Reprice, app

        exits.callback(app.close)
        app.migrate()
        app.queues.limit("shop", Limit(rate=2, burst=35))
        for number in (1, 2):
            exits.callback(_end, _worker(number, directory))
        before = dict(shop.prices)

        run = app.runs.preview(Reprice(percent=10), actor="ana", reason="spring sale")
        run.wait(SECONDS_MAX, until={"previewed"})
        first = next(run.changes())
        _say(began_at, f"previewed {run.total} rings, none touched; {first.ref}: {first.before} → {first.after}")
        faults = _unless(shop.prices == before, "the preview touched the shop")

        run.apply(actor="ana").wait(SECONDS_MAX)
        _say(began_at, f"applied: {run.state}, {run.counts}; the shop was broken for {', '.join(BROKEN)}")
        faults += _unless(run.state == "partial" and run.counts == {"applied": 30, "failed": 2}, "not as it was broken")

        shop.mend()
        run.retry_failed(actor="ben", reason="they have mended it").wait(SECONDS_MAX)
        _say(began_at, f"tried again what failed: {run.state}")
        faults += _unless(run.state == "applied", "something is left over")

        shop.prices["ring-030"] = 1
        found = {one.ref: (one.expected, one.actual) for one in run.reconcile().wait().mismatches()}
        _say(began_at, f"looked whether it held: {found} ({LYING} was a lie, ring-030 somebody's hand)")
        faults += _unless(set(found) == {LYING, "ring-030"}, "other rings differ than should")

        run.roll_back(actor="ana", reason="too cheap", overwrite=True).wait(SECONDS_MAX)
        _say(began_at, f"rolled back: {run.state}, {run.counts}")
        faults += _unless(shop.prices == before, "not every price is what it was")

        books = shop.books()
        faults += _unless(not books["answers"].get("429"), "the workers were too fast for the shop")
        faults += _unless(all(len(keys) == 2 for keys in books["keys"].values()), "a ring has more keys than two")
        faults += _unless(len(books["changes"][SILENT]) == 2, f"{SILENT} was changed twice for one answer")
        faults += [f"{one.invariant}: {one.detail}" for one in app.record.verify()]
        _say(began_at, f"the shop's own books: answers {books['answers']}, one key for each ring and direction")
    for fault in faults:
        _say(began_at, f"FAULT: {fault}")
    return 1 if faults else 0


def _worker(number: int, directory: Path) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "detent.cli", "worker", "examples.reprice.reprice:app", "--name", f"w{number}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with (directory / f"worker-{number}.log").open("wb") as log:
        return subprocess.Popen(
            [*argv, "--slots", "4"], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment
        )


def _end(worker: subprocess.Popen[bytes]) -> None:
    worker.terminate()
    try:
        worker.wait(10)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()


def _unless(true: bool, fault: str) -> list[str]:
    return [] if true else [fault]


def _say(began_at: float, text: str) -> None:
    sys.stdout.write(f"{time.monotonic() - began_at:5.1f} s  {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
