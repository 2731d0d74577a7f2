"""What a type checker says to users: wrong arguments fail before anything runs (U1)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mypy import api

HEAD = """\
from __future__ import annotations
from dataclasses import dataclass
from datetime import UTC, datetime
from detent import AsyncJob, BatchRun, Change, Context, Detent, Job, Retry

app = Detent("sqlite:///shop.db")

@app.task
def welcome(ctx: Context, user_id: int, lang: str = "en") -> str:
    ctx.event("writing", user_id=user_id)
    return "sent"

@app.task(queue="mail", retry=Retry(3), timeout=60)
def tuned(ctx: Context, user_id: int) -> float:
    return 0.5

@app.task
async def fetch(ctx: Context, url: str) -> bytes:
    return b""

@app.task(name="fetch.slow")
async def slow(ctx: Context, url: str) -> list[int]:
    return []

@app.task
def charge(ctx: Context, order_id: int) -> None:
    with ctx.commit() as tx:
        rows, changed = tx.execute("UPDATE orders SET paid = :sum WHERE id = :id", {"sum": 1, "id": order_id})
        tx.intend(welcome.call(user_id=7))
        tx.result({"changed": changed})

@app.batch(name="reprice", tolerate=0.02)
@dataclass
class Reprice:
    percent: int
    def targets(self) -> list[str]:
        return []
    def preview(self, ref: str) -> Change[int]:
        return Change(before=1, after=2)
    def apply(self, ctx: Context, ref: str, change: Change[int]) -> None:
        ctx.event("applying", price=change.after + 1)
    async def revert(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

@app.batch
@dataclass
class Later:
    async def targets(self) -> list[str]:
        return []
    async def preview(self, ref: str) -> Change[str]:
        return Change(before="", after="")
    async def apply(self, ctx: Context, ref: str, change: Change[str]) -> None: ...

"""

GOOD = """\
job: Job[str] = welcome.enqueue(user_id=7)
job = welcome.enqueue(7, lang="de")
text: str = job.wait(timeout=10).result
number: float = tuned.enqueue(user_id=1).result
body: bytes = fetch.enqueue(url="https://example.org").wait().result
numbers: list[int] = slow.enqueue(url="https://example.org").wait().result
due = datetime(2026, 1, 1, tzinfo=UTC)
job = app.enqueue(
    welcome.call(user_id=7), key="welcome:7", key_ttl=60, due_at=due, expires_at=due, priority=1, queue="q",
    tenant="acme", metadata={"from": "shop"}, correlation_id="c", traceparent=None,
)
jobs: list[Job[str]] = app.enqueue_many(welcome.call(user_id=u) for u in range(3))
job = app.using(object()).enqueue(welcome.call(user_id=8), priority=3)
app.jobs.get(str(job.id)).cancel(actor="ana", reason="wrong order"); job.why()

run: BatchRun = app.runs.preview(Reprice(percent=10)).wait(timeout=60, until={"previewed"})
run = app.runs.preview(Later(), actor="ana", tenant="acme")
counts: dict[str, int] = run.apply(actor="ana", only=["a"]).counts
run.retry_failed(actor="ana"); run.roll_back(actor="ana", reason="too cheap")
refs: list[str] = [one.ref for one in run.reconcile().mismatches()]

def inline(ctx: Context) -> str:
    return welcome(ctx, 7) + welcome(ctx, user_id=7, lang="de")

async def twin(ctx: Context) -> str:
    job: AsyncJob[str] = await app.aio.enqueue(welcome.call(user_id=9), key="welcome:9")
    jobs: list[AsyncJob[bytes]] = await app.aio.enqueue_many([fetch.call(url="x")])
    found: bytes = await fetch(ctx, "x")
    again: list[int] = await slow(ctx, url="x")
    job = await app.aio.using(object()).enqueue(welcome.call(user_id=1), tenant="acme")
    return (await job.wait(timeout=1)).result
"""

WRONG = {
    "type of an argument": ('welcome.enqueue(user_id="7")', r'Argument "user_id" .* expected "int"'),
    "type of a described argument": ('welcome.call(user_id="7")', r'Argument "user_id" .* expected "int"'),
    "missing argument": ("welcome.enqueue()", r'Missing positional argument "user_id"'),
    "unknown argument": ("welcome.enqueue(user_id=7, user=7)", r'Unexpected keyword argument "user"'),
    "tuned task": ('tuned.enqueue(user_id="7")', r'Argument "user_id" .* expected "int"'),
    "async task": ("fetch.enqueue(url=7)", r'Argument "url" .* expected "str"'),
    "tuned async task": ("slow.call(url=7)", r'Argument "url" .* expected "str"'),
    "result": ("x: int = welcome.enqueue(user_id=7).wait().result", r'has type "str", variable has type "int"'),
    "async result": ("x: int = fetch.enqueue(url='').result", r'has type "bytes", variable has type "int"'),
    "tuned result": ("x: str = tuned.enqueue(user_id=7).result", r'has type "float", variable has type "str"'),
    "unknown option": ("app.enqueue(welcome.call(user_id=7), prio=3)", r'Unexpected keyword argument "prio"'),
    "type of an option": ('app.enqueue(welcome.call(user_id=7), priority="high")', r'Argument "priority" .* "str"'),
    "function instead of call": ("app.enqueue(welcome)", r'Argument 1 to "enqueue" of "Detent" has incompatible type'),
    "direct call": ('def f(ctx: Context) -> str: return welcome(ctx, "7")', r'incompatible type "str"; expected "int"'),
    "unawaited": ("def f(ctx: Context) -> bytes: return fetch(ctx, 'x')", r'got "Coroutine'),
    "type of an actor": ("app.jobs.get(7).cancel(actor=7)", r'Argument "actor" .* expected "str \| None"'),
    "field of a batch": ("app.runs.preview(Reprice(percent='10'))", r'Argument "percent" .* expected "int"'),
    "no batch": ("app.runs.preview(7)", r'Argument 1 to "preview" .* incompatible type "int"'),
    "action of a job on a run": ("app.runs.get(7, kind='batch').discard()", r'"BatchRun" has no attribute "discard"'),
    "type of a change": ("x: str = Reprice(percent=1).preview('a').after", r'has type "int", variable has type "str"'),
    "unknown option of a batch": ("app.batch(tolerates=3)", r'Unexpected keyword argument "tolerates"'),
    "unknown option of a task": ("app.task(quue='mail')", r'Unexpected keyword argument "quue"'),
}  # fmt: skip


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One run of mypy over all snippets: what it says about each, by name."""
    directory = tmp_path_factory.mktemp("snippets")
    files = {"good": HEAD + GOOD} | {
        f"wrong_{number}": f"{HEAD}{code}\n" for number, (code, _) in enumerate(WRONG.values())
    }
    for name, text in files.items():
        (directory / f"{name}.py").write_text(text)
    root = Path(__file__).parents[2]
    out, err, _ = api.run(
        ["--strict", "--config-file", str(root / "pyproject.toml"), "--cache-dir", str(directory / "cache"),
         "--no-error-summary", "--hide-error-context", *(str(directory / f"{name}.py") for name in files)]
    )  # fmt: skip
    assert err == ""
    said = dict.fromkeys(files, "")
    for line in out.splitlines():
        name = re.sub(r".*?(\w+)\.py:.*", r"\1", line)
        said[name] += f"{line}\n"
    return said


def test_what_is_right_passes(verdicts: dict[str, str]) -> None:
    assert verdicts["good"] == ""


@pytest.mark.parametrize("mistake", WRONG)
def test_what_is_wrong_is_found(verdicts: dict[str, str], mistake: str) -> None:
    _, complaint = WRONG[mistake]
    said = verdicts[f"wrong_{list(WRONG).index(mistake)}"]
    lines = {int(found[1]) for found in re.finditer(r"\.py:(\d+): error", said)}
    assert lines == {HEAD.count("\n") + 1}, said
    assert re.search(complaint, said), said
