"""The first example of the README: a job, a workflow and a batch run.

Run it, then `detent worker shop:app`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from detent import Change, Context, Detent, Retry, WorkflowContext

app = Detent("sqlite:///shop.db")  # or postgresql://…


@app.task(queue="mail", retry=Retry(3))
def welcome(ctx: Context, user_id: int) -> str:
    ctx.event("writing", user_id=user_id)  # a line in the job's record
    return f"sent to {user_id}"


def file_report(amount: int) -> str:
    return f"report about {amount} EUR"


@app.workflow(name="expense")
def expense(ctx: WorkflowContext, amount: int) -> str:
    report = ctx.step("file", file_report, amount)  # recorded: after a crash it is not called again
    approved = ctx.wait_for("decision", bool)  # for days if need be, without a thread or a process
    return f"{report}: {'paid' if approved else 'refused'}"


PRICES = Path("prices")  # one file for each product: this stands for a shop behind an API


@app.batch(name="reprice", retry=Retry(2))
@dataclass
class Reprice:
    percent: int

    def targets(self) -> Iterator[str]:
        yield from sorted(file.name for file in PRICES.iterdir())

    def preview(self, ref: str) -> Change[int]:  # computes the change and makes none
        price = int((PRICES / ref).read_text())
        return Change(before=price, after=price * (100 + self.percent) // 100)

    def apply(self, ctx: Context, ref: str, change: Change[int]) -> None:
        (PRICES / ref).write_text(str(change.after))

    def revert(self, ctx: Context, ref: str, change: Change[int]) -> None:
        (PRICES / ref).write_text(str(change.before))


if __name__ == "__main__":
    job = app.enqueue(welcome.call(user_id=7), key="welcome:7")
    assert app.enqueue(welcome.call(user_id=7), key="welcome:7") == job  # the same key, the same job
    print(job.why())
