"""What triggers runs: signatures, pushes, schedules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from detent.declare.context import Context
from detent.errors import InvalidInput, InvalidPayload, InvalidSetting
from detent.ops.github_push import Push, check_signature, queue_push, read_push
from detent.testing.harness import Harness

# The example of GitHub's own documentation, and test cases 1, 2 and 6 of RFC 4231.
VECTORS = [
    (
        b"It's a Secret to Everybody",
        b"Hello, World!",
        "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    ),
    (b"\x0b" * 20, b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
    (b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
    (
        b"\xaa" * 131,
        b"Test Using Larger Than Block-Size Key - Hash Key First",
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
    ),
]
SHA = "9" * 40


def body(**overrides: Any) -> bytes:
    whole: dict[str, Any] = {
        "ref": "refs/heads/main",
        "after": SHA,
        "repository": {"full_name": "acme/site"},
        "pusher": {"name": "ana"},
    }
    return json.dumps(whole | overrides).encode()


@pytest.mark.parametrize(("secret", "text", "digest"), VECTORS)
def test_a_known_signature_is_right(secret: bytes, text: bytes, digest: str) -> None:
    """O3"""
    assert check_signature(secret, text, f"sha256={digest}")


@pytest.mark.parametrize(("secret", "text", "digest"), VECTORS)
@pytest.mark.parametrize(
    "wrong",
    [
        lambda digest: None,
        lambda digest: "",
        lambda digest: digest,
        lambda digest: f"sha1={digest}",
        lambda digest: f"sha256={digest[:-1]}",
        lambda digest: f"sha256={digest[:-1]}{'0' if digest[-1] != '0' else '1'}",
        lambda digest: f"sha256={digest}\udcff",
        lambda digest: f"sha256={digest.upper()}",
    ],
)
def test_any_other_is_wrong(secret: bytes, text: bytes, digest: str, wrong: Any) -> None:
    """O3: none, another algorithm, one digit off, letters of another kind."""
    assert not check_signature(secret, text, wrong(digest))


def test_the_body_and_the_secret_count() -> None:
    secret, text, digest = VECTORS[0]
    assert check_signature(secret.decode(), text, f"sha256={digest}")
    assert not check_signature(secret + b"!", text, f"sha256={digest}")
    assert not check_signature(secret, text + b" ", f"sha256={digest}")
    with pytest.raises(InvalidSetting, match="webhook secret"):
        check_signature("", text, f"sha256={digest}")


def test_a_push_is_read() -> None:
    """O3"""
    push = read_push("d-1", body())
    assert push is not None
    assert (push.delivery_id, push.repository, push.ref, push.sha) == ("d-1", "acme/site", "refs/heads/main", SHA)
    assert push.branch == "main"
    assert push.metadata == {"trigger": "webhook", "delivery_id": "d-1", "author": "ana"}
    tag = read_push("d-2", body(ref="refs/tags/v1", pusher=None))
    assert tag is not None
    assert tag.branch is None


@pytest.mark.parametrize("gone", [{"deleted": True}, {"after": "0" * 40}])
def test_a_ref_that_was_deleted_runs_nothing(gone: dict[str, Any]) -> None:
    assert read_push("d-1", body(**gone)) is None


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (body(ref=7), "body.ref"),
        (body(ref="x" * 1001), "body.ref"),
        (body(after=None), "body.after"),
        (body(repository=[]), "body.repository"),
        (body(repository={}), "body.repository.full_name"),
        (b"[]", "body"),
        (b"\xff", "body"),
        (b"{", "body"),
        (b'{"ref":"a\\u0000b"}', "body"),
        (b"[" * 1000, "body"),
    ],
)
def test_what_is_no_push_is_refused(wrong: bytes, named: str) -> None:
    """S3: the message names what is wrong with it."""
    with pytest.raises((InvalidInput, InvalidPayload)) as refusal:
        read_push("d-1", wrong)
    assert refusal.value.field.startswith(named)


def test_a_delivery_queues_one_run_however_often_it_comes(detent: Harness) -> None:
    """O3, J3: the delivery is the key, for each environment."""
    push = Push("d-7", "acme/site", "refs/heads/it's $(x)", SHA, {"trigger": "webhook"})
    first = queue_push(detent.app.ops, push, env="staging")
    again = queue_push(detent.app.ops, push, env="staging")
    assert (again.id, first.created, again.created) == (first.id, True, False)
    other = queue_push(detent.app.ops, push, env="production", project_id="site")
    assert (other.project_id, other.git_ref, other.git_sha) == ("site", push.ref, SHA)
    assert [run.id for run in detent.app.ops.list()] == [other.id, first.id]


def test_a_schedule_queues_a_run_at_each_tick_once(detent: Harness) -> None:
    """O3, J11: a task that queues it under its effect's key, so that its own retry queues no second one."""
    app = detent.app

    @app.task(name="nightly")
    def nightly(ctx: Context) -> str:
        run = app.ops.queue("shop", "production", git_ref="main", metadata={"trigger": "cron"}, key=ctx.effect_key)
        return run.id

    job = nightly.enqueue()
    detent.crash(job, "returned")
    detent.work()
    assert len(app.ops.list()) == 1
    detent.clock.advance(31)
    detent.work()
    (run,) = app.ops.list()
    assert job.refresh().result == run.id
    assert run.metadata == {"trigger": "cron"}
