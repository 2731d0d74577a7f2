"""An application whose workflow has many children. Parents and children have queues of their own."""

from __future__ import annotations

from detent import Context, Detent, WorkflowContext

app = Detent()


@app.task(name="render", queue="children")
def render(ctx: Context, photo: int, name: str) -> int:
    """A child, with arguments that cost memory."""
    return photo


@app.workflow(name="album", queue="parents")
def album(ctx: WorkflowContext, photos: int) -> list[int]:
    """Spawn the children one by one, wait for them, and read all results."""
    calls = (render.call(photo=n, name=f"photo {n} " + "x" * 200) for n in range(photos))
    done = ctx.spawn_many("render", calls).join()
    return [done.succeeded, sum(done.results())]
