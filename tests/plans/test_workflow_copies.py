"""What a rewind or a fork costs grows with the number of steps and no faster, also without statistics."""

from __future__ import annotations

from contextlib import closing

import pytest

from detent.model.clock import to_micros
from detent.model.copy_records import Fork, Forked, Rewind, Rewound
from detent.store.contract import Verbs
from detent.testing.stores import START, is_sqlite, plain_connection, turnable_store
from tests.contract.jobs.sample_jobs import abort, enqueue
from tests.contract.workflows.sample_workflows import begin, record
from tests.plans.measured import work_of

FEW, MANY = 300, 1500
_STEP = "INSERT INTO {p}workflow_step (job_id, generation, path, seq, kind, attempt, began_at, done_at, value{more}) "
_NUMBERS = "WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {many}) "
# Of each number: a step that happens once, a wait with its end and its signal, children that were joined, and an undo
# of a step that is not kept.
_RECORD = (
    (_STEP, "SELECT {id}, 1, 'once:' || n, 6 * n, 'call', 0, {now}, {now}, '1'{none} FROM number"),
    (_STEP, "SELECT {id}, 1, 'wait:' || n || '~end', 6 * n + 1, 'deadline', 0, {now}, {now}, '1'{none} FROM number"),
    (_STEP, "SELECT {id}, 1, 'wait:' || n, 6 * n + 2, 'signal', 0, {now}, {now}, '1'{signal} FROM number"),
    (_STEP, "SELECT {id}, 1, 'kids:' || n, 6 * n + 3, 'spawn', 0, {now}, {now}, '1'{none} FROM number"),
    (_STEP, "SELECT {id}, 1, 'kids:' || n || '~join', 6 * n + 4, 'join', 0, {now}, {now}, '1'{none} FROM number"),
    (_STEP, "SELECT {id}, 1, 'late:' || n || '~undo', 900000 + n, 'undo', 0, {now}, {now}, '1'{none} FROM number"),
    ("INSERT INTO {p}workflow_step_begun (job_id, generation, path, attempt, begun_at) ",
     "SELECT {id}, 1, 'once:' || n, 1, {now} FROM number"),
    ("INSERT INTO {p}workflow_signal (job_id, name, seq, payload, actor, sent_at) ",
     "SELECT {id}, 'go', n, '1', 'ana', {now} FROM number"),
)  # fmt: skip


def prepared(url: str, many: int) -> int:
    """A workflow that rests, with that many steps of each kind; no statistics are gathered."""
    with turnable_store(url) as (store, _):
        held = begin(store, attempts_max=1)
        record(store, held, "last", seq=800_000)
        abort(store, held)
    sqlite = is_sqlite(url)
    words = {
        "p": "detent_" if sqlite else "detent.",
        "now": str(to_micros(START, field="at")) if sqlite else f"'{START.isoformat()}'::timestamptz",
        "id": held.job_id,
        "more": ", signal_name, signal_seq",
        "none": ", NULL, NULL" if sqlite else ", NULL::text, NULL::bigint",
        "signal": ", 'go', n",
    }
    numbers = _NUMBERS.format(many=many)
    with closing(plain_connection(url)) as connection:
        for insert, select in _RECORD:
            head, rows = insert.format(**words), select.format(**words)
            connection.execute(f"{head}{numbers}{rows}" if sqlite else f"{numbers}{head}{rows}")
        connection.commit()
    return held.job_id


@pytest.mark.parametrize("word", ["rewind", "fork"])
def test_it_grows_with_the_number_of_steps(store_url: str, word: str) -> None:
    def copies(verbs: Verbs, job_id: int, many: int) -> None:
        if word == "rewind":
            answer = verbs.workflow_rewind(Rewind(job_id=job_id, to="last", actor="ana", seed=""))
            assert answer == Rewound(job_id, 2, 5 * many, 1, 0)
            return
        new = enqueue(verbs)
        replaced = (("once:1", "2"), ("once:2", "3"))
        item = Fork(job_id=job_id, new_id=new, at="last", actor="ana", seed="", replaced=replaced)
        assert verbs.workflow_fork(item) == Forked(new, job_id, 5 * many)

    costs = []
    for many in (FEW, MANY):
        job_id = prepared(store_url, many)
        costs.append(work_of(store_url, lambda verbs, _, job_id=job_id, many=many: copies(verbs, job_id, many)))  # type: ignore[misc]
    assert costs[1] < 1.5 * costs[0] * MANY / FEW, costs
