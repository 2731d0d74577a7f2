"""What people read when a step has failed: which step it was, and what to do."""

from __future__ import annotations

from detent import Detent, Retry
from detent.declare.workflow import Step
from detent.declare.workflow_context import AsyncWorkflowContext, WorkflowContext
from detent.testing.harness import Harness
from tests.worker.attempt.workflow.conftest import note, work

ONCE = Retry(0)
BROKEN = OSError("no lorry")


def fail() -> None:
    raise BROKEN


async def afail() -> None:
    fail()


def test_the_error_names_the_step_that_raised_it(harness: Harness, app: Detent) -> None:
    """Otherwise a step that is not on record is found only by reading the traceback."""

    def part(ctx: WorkflowContext) -> None:
        ctx.step("ship", fail)

    @app.workflow(name="order", retry=Retry(1, base=1))
    def order(ctx: WorkflowContext) -> None:
        ctx.scope("left", part)

    job = order.enqueue()
    work(harness)
    assert job.why().endswith("OSError: no lorry (in step 'left/ship')")
    work(harness, 10)
    # The same error object was raised more than once.
    assert (job.refresh().error or "").splitlines()[-2:] == ["OSError: no lorry", "in step 'left/ship'"]
    assert job.why() == "it is dead (quarantined) after attempt 2: OSError: no lorry (in step 'left/ship')"


def test_an_async_step_is_named_too(harness: Harness, app: Detent) -> None:
    @app.workflow(name="order", retry=ONCE)
    async def order(ctx: AsyncWorkflowContext) -> None:
        await ctx.step(Step("ship", key=7), afail)

    job = order.enqueue()
    work(harness)
    assert job.why().endswith("OSError: no lorry (in step 'ship:7')")


def test_an_error_of_the_function_itself_names_no_step(harness: Harness, app: Detent) -> None:
    @app.workflow(name="order", retry=ONCE)
    def order(ctx: WorkflowContext) -> None:
        try:
            ctx.step("ship", fail)
        except OSError as error:
            raise ValueError("sold out") from error

    job = order.enqueue()
    work(harness)
    assert job.why().endswith("ValueError: sold out")


def test_a_step_that_nobody_knows_about_says_how_to_settle_it(harness: Harness, app: Detent) -> None:
    @app.workflow(name="order", retry=Retry(1))
    def order(ctx: WorkflowContext) -> None:
        ctx.step(Step("charge", once=True), note, "charge")

    job = order.enqueue()
    harness.crash(job, at="called charge")
    work(harness)
    work(harness, 60)
    assert f"`detent jobs settle {job.id} --step charge --done`" in (job.refresh().error or "")
