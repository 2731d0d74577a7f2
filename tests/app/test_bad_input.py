"""Bad input through the public doors: one verdict on both databases, a message that helps, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from detent import Limit
from detent.errors import InvalidArguments, InvalidInput, InvalidPayload, InvalidSetting, UnknownTask
from tests.app.shop import Shop


def nested(levels: int) -> Any:
    deep: Any = 1
    for _ in range(levels):
        deep = [deep]
    return deep


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001

Door = Callable[[Shop], object]
SAID: dict[str, tuple[Door, type[InvalidInput] | type[UnknownTask], str]] = {
    # tasks and arguments
    "unknown task": (
        lambda shop: shop.app.enqueue_named("welcom", "{}"),
        UnknownTask,
        "no task 'welcom' is declared here; declared: fails, later, rests, sync, welcome",
    ),
    "argument of another type": (
        lambda shop: shop.welcome.enqueue(user_id="7"),  # type: ignore[arg-type]
        InvalidArguments,
        "welcome.user_id: found `str`; allowed: `int`",
    ),
    "missing argument": (
        lambda shop: shop.welcome.enqueue(),  # type: ignore[call-arg]
        InvalidArguments,
        "welcome: found missing a required argument: 'user_id'; allowed: (user_id: 'int', lang: 'str' = 'en')",
    ),
    "named with an unknown argument": (
        lambda shop: shop.app.enqueue_named("welcome", '{"user_id":7,"x":1}'),
        InvalidArguments,
        "welcome: found the unknown field `x`; allowed: a value that fits the declared type",
    ),
    "named with text that is no JSON": (
        lambda shop: shop.app.enqueue_named("welcome", "{user_id: 7}"),
        InvalidPayload,
        "welcome: found malformed JSON: ",
    ),
    "function instead of a call": (
        lambda shop: shop.app.enqueue(shop.welcome),  # type: ignore[arg-type]
        InvalidInput,
        "call: found a value of type SendableTask; allowed: task.call(...), a described call",
    ),
    # payloads (S3)
    "too big": (
        lambda shop: shop.fails.enqueue(why="x" * (1 << 20)),
        InvalidPayload,
        "fails: found 1048586 bytes; allowed: at most 1048576 bytes",
    ),
    "100 MB": (
        lambda shop: shop.app.enqueue_named("fails", f'{{"why":"{"x" * 100_000_000}"}}'),
        InvalidPayload,
        "fails: found more than 1048576 bytes; allowed: at most 1048576 bytes",
    ),
    "too deep": (
        lambda shop: shop.later.enqueue(numbers=nested(64)),
        InvalidPayload,
        "later.numbers[0][0]",
    ),
    "too deep as text": (
        lambda shop: shop.app.enqueue_named("later", '{"numbers":' + "[" * 100_000 + "]" * 100_000 + "}"),
        InvalidPayload,
        "later: found nesting deeper than 64; allowed: at most 64 levels",
    ),
    "NUL": (
        lambda shop: shop.fails.enqueue(why="a\0b"),
        InvalidPayload,
        "fails.why: found NUL at character 1; allowed: text without NUL and lone surrogates",
    ),
    "NUL as text": (
        lambda shop: shop.app.enqueue_named("fails", r'{"why":"a\u0000b"}'),
        InvalidPayload,
        "fails.why: found NUL at character 1; allowed: text without NUL and lone surrogates",
    ),
    "lone surrogate": (
        lambda shop: shop.fails.enqueue(why="\ud83d"),
        InvalidPayload,
        "fails.why: found the lone surrogate U+D83D at character 0; allowed: text without NUL and lone surrogates",
    ),
    "NaN": (
        lambda shop: shop.later.enqueue(numbers=[1, float("nan")]),  # type: ignore[list-item]
        InvalidPayload,
        "later.numbers[1]: found nan; allowed: a number that is finite as a double",
    ),
    "NaN as text": (
        lambda shop: shop.app.enqueue_named("later", '{"numbers":[NaN]}'),
        InvalidPayload,
        "later.numbers[0]: found nan; allowed: a number that is finite as a double",
    ),
    # how it is sent
    "key of 10 kB": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), key="k" * 10_000),
        InvalidInput,
        "key: found 10000 bytes; allowed: at most 512 bytes",
    ),
    "key in more bytes than letters": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), key="ü" * 257),
        InvalidInput,
        "key: found 514 bytes; allowed: at most 512 bytes",
    ),
    "empty key": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), key=""),
        InvalidInput,
        "key: found an empty string; allowed: 1 to 512 bytes of text",
    ),
    "key with NUL": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), key="a\0"),
        InvalidInput,
        "key: found NUL at character 1; allowed: text without NUL and lone surrogates",
    ),
    "key that is no text": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), key=7),  # type: ignore[arg-type]
        InvalidInput,
        "key: found a value of type int; allowed: a string",
    ),
    "one key for many": (
        lambda shop: shop.app.enqueue_many([shop.welcome.call(7)], key="k"),
        InvalidInput,
        "key: found one key for many jobs: 'k'; allowed: no key; enqueue jobs with keys one by one",
    ),
    "key_ttl without a key": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), key_ttl=5),
        InvalidInput,
        "key_ttl: found 5 without a key; allowed: key_ttl together with key",
    ),
    "key_ttl of nothing": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), key="k", key_ttl=0),
        InvalidInput,
        "key_ttl: found 0; allowed: a positive number of seconds below 10^9",
    ),
    "naive due_at": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), due_at=NAIVE),
        InvalidInput,
        "due_at: found the naive time 2026-01-01T00:00:00; allowed: an aware datetime, such as datetime.now(UTC)",
    ),
    "naive expires_at": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), expires_at=NAIVE),
        InvalidInput,
        "expires_at: found the naive time",
    ),
    "due_at as text": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), due_at="tomorrow"),  # type: ignore[arg-type]
        InvalidInput,
        "due_at: found a value of type str; allowed: an aware datetime",
    ),
    "a moment past the calendar": (
        lambda shop: shop.app.enqueue(
            shop.welcome.call(7), due_at=datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))
        ),
        InvalidInput,
        "due_at: found 9999-12-31T23:59:59.999999-05:00; allowed: a time between the years 1 and 9999 in UTC",
    ),
    "a moment before the calendar": (
        lambda shop: shop.app.enqueue(
            shop.welcome.call(7), expires_at=datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))
        ),
        InvalidInput,
        "expires_at: found 0001-01-01T00:00:00+05:00; allowed: a time between",
    ),
    "a filter past the calendar": (
        lambda shop: shop.app.jobs.where(since=datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))).count(),
        InvalidInput,
        "since: found 9999-12-31T23:59:59.999999-05:00; allowed: a time between the years 1 and 9999 in UTC",
    ),
    "a rate per next to no time": (
        lambda shop: shop.app.queues.limit("mail", Limit(rate=1e6, per=5e-324)),
        InvalidSetting,
        "per: found 5e-324; allowed: a number from 1e-09 to 1e+09",
    ),
    "a rate of more digits than a number has": (
        lambda shop: shop.app.queues.limit("mail", Limit(rate=10**400)),
        InvalidSetting,
        "rate: found 1000000",
    ),
    "silent jobs without a limit": (
        lambda shop: shop.app.jobs.silent(limit=2**31),
        InvalidInput,
        "limit: found 2147483648; allowed: a whole number from 1 to 10000",
    ),
    "a version that no workflow has": (
        lambda shop: shop.app.workflows.list(version=2**31),
        InvalidInput,
        "version: found 2147483648; allowed: a version, such as 2",
    ),
    "a cursor of limits with NUL": (
        lambda shop: shop.app.limits.list(after="a\0"),
        InvalidInput,
        "key: found NUL at character 1; allowed: text without NUL and lone surrogates",
    ),
    "environments of a project with NUL": (
        lambda shop: shop.app.ops.environments("a\0"),
        InvalidInput,
        "project_id: found NUL at character 1; allowed: text without NUL and lone surrogates",
    ),
    "priority out of range": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), priority=40_000),
        InvalidInput,
        "priority: found 40000; allowed: a whole number from -32768 to 32767, higher first",
    ),
    "tenant of nothing": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), tenant=None),  # type: ignore[arg-type]
        InvalidInput,
        "tenant: found a value of type NoneType; allowed: a string",
    ),
    "long queue": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), queue="q" * 201),
        InvalidInput,
        "queue: found 201 bytes; allowed: at most 200 bytes",
    ),
    "metadata that is no mapping": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), metadata=[1]),  # type: ignore[arg-type]
        InvalidInput,
        "metadata: found a value of type list; allowed: a mapping",
    ),
    "metadata too big": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), metadata={"a": "x" * 20_000}),
        InvalidPayload,
        "metadata: found 20008 bytes; allowed: at most 16384 bytes",
    ),
    "metadata with NUL": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), metadata={"a": ["b\0"]}),
        InvalidPayload,
        "metadata.a[0]: found NUL at character 1",
    ),
    "an option nobody knows": (
        lambda shop: shop.app.enqueue(shop.welcome.call(7), prio=3),  # type: ignore[call-arg]
        InvalidInput,
        "prio: found no option of enqueue; allowed: key, key_ttl, debounce, due_at, expires_at, priority, queue,",
    ),
    # other doors
    "pause nothing": (
        lambda shop: shop.app.queues.pause("", actor="ana"),
        InvalidInput,
        "queue: found an empty string; allowed: 1 to 200 bytes of text",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_refused_with_a_message_that_helps(shop: Shop, case: str) -> None:
    """S3: what was refused, what was found, what is allowed; nothing is lost or half written."""
    door, kind, says = SAID[case]
    shop.welcome.enqueue(user_id=1)
    with shop.untouched(), pytest.raises(kind) as refusal:
        door(shop)
    assert type(refusal.value) is kind
    assert str(refusal.value).startswith(says)
    assert len(str(refusal.value)) < 500
    assert shop.welcome.enqueue(user_id=2).created


def test_the_largest_that_is_allowed_passes(shop: Shop) -> None:
    """S3: the limits are where they are said to be, and what passes comes back letter for letter."""
    room = shop.app.settings.payload_max - len('{"why":""}')
    big = shop.fails.enqueue(why="ü" * (room // 2))
    odd = shop.fails.enqueue(why='"\\\u0001\u2028\U0001f600 \u00fc')
    deep = shop.app.enqueue(shop.welcome.call(7), key="ü" * 256, metadata={"deep": nested(62), "n": 2**63, "f": 5e-324})
    assert shop.app.jobs.get(big.id).payload == {"why": "ü" * (room // 2)}
    assert shop.app.jobs.get(odd.id).payload == {"why": '"\\\u0001\u2028\U0001f600 \u00fc'}
    assert shop.app.jobs.get(deep.id).metadata == {"deep": nested(62), "n": 2**63, "f": 5e-324}
    ends = [-32768, 32767]
    assert [shop.app.enqueue(shop.welcome.call(7), priority=end).refresh().row.priority for end in ends] == ends


def test_a_moment_in_any_zone_is_the_same_moment(shop: Shop) -> None:
    due = datetime(2030, 1, 1, 12, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    job = shop.app.enqueue(shop.welcome.call(7), due_at=due)
    assert (job.refresh().due_at, job.due_at.tzinfo) == (due, UTC)
