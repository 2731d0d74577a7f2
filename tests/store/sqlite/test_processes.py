"""Forks. Many processes at the first start are in tests/migrations."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from detent.model.clock import SystemClock
from detent.store.sqlite.store import SqliteStore
from tests.store.sqlite.other_process import Process

FORK = """
store.ready()
store.job_enqueue([new_job(1)])
store.job_get([1])
said, saying = os.pipe()
told, telling = os.pipe()
if os.fork() == 0:
    store.job_enqueue([new_job(2)])
    os.write(saying, b"x")
    os.read(told, 1)
    store.job_enqueue([new_job(3)])
    os._exit(0)
os.read(said, 1)
store.close()
os.write(telling, b"x")
assert os.wait()[1] == 0
store.job_enqueue([new_job(4)])
say(",".join(str(n) for n in range(1, 5) if store.job_get([n])[0]))
"""
FORK_INSIDE = """
from detent.errors import WrongPlace
store.ready()

def work(verbs):
    verbs.job_enqueue([new_job(1)])
    child = os.fork()
    if child == 0:
        try:
            store.job_enqueue([new_job(2)])
        except WrongPlace:
            os._exit(7)
        os._exit(1)
    say(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))
    return verbs.job_enqueue([new_job(3)])

store.together(work)
say(",".join(str(n) for n in range(1, 4) if store.job_get([n])[0]))
"""
FORK_INSIDE_AND_LEAVE = """
store.ready()
process = os.getpid()
try:
    with_child = []
    def work(verbs):
        verbs.job_enqueue([new_job(1)])
        child = os.fork()
        if child:
            with_child.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        return child
    store.together(work)
except Exception as error:
    os._exit(9 if os.getpid() != process else 1)
if os.getpid() != process:
    os._exit(2)
say(str(with_child[0]))
say(str(store.job_get([1])[0] is not None))
"""


def test_both_sides_of_a_fork_keep_what_they_wrote(tmp_path: Path) -> None:
    """The parent's last close deleted the log in which its forked child was still writing, and the rows were lost."""
    path = tmp_path / "t.db"
    with Process(FORK, path) as parent:
        assert parent.ends_well() == ["1,2,3,4"]
    with closing(SqliteStore(str(path), clock=SystemClock())) as store:
        assert [job.id for job in store.job_get([1, 2, 3, 4]) if job is not None] == [1, 2, 3, 4]


def test_a_child_forked_inside_a_transaction_may_not_touch_the_database(tmp_path: Path) -> None:
    with Process(FORK_INSIDE, tmp_path / "t.db") as parent:
        assert parent.ends_well() == ["7", "1,3"]


def test_a_child_forked_inside_a_transaction_does_not_end_it(tmp_path: Path) -> None:
    with Process(FORK_INSIDE_AND_LEAVE, tmp_path / "t.db") as parent:
        assert parent.ends_well() == ["9", "True"]
