"""The first example of the README: one task, one job.

Run it, then `detent worker shop:app`.
"""

from detent import Context, Detent, Retry

app = Detent("sqlite:///shop.db")  # or postgresql://…


@app.task(queue="mail", retry=Retry(3))
def welcome(ctx: Context, user_id: int) -> str:
    ctx.event("writing", user_id=user_id)  # a line in the job's record
    return f"sent to {user_id}"


if __name__ == "__main__":
    job = app.enqueue(welcome.call(user_id=7), key="welcome:7")
    assert app.enqueue(welcome.call(user_id=7), key="welcome:7") == job  # the same key, the same job
    print(job.why())
