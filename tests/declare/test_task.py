"""Tasks: what may be one, what a call of it may carry, and that it stays a function."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal
from uuid import UUID

import pytest

from detent import Context, Detent, Retry
from detent.errors import InvalidArguments, InvalidInput, InvalidPayload, InvalidSetting, UnknownTask
from tests.declare.nobody import NOBODY


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Line:
    sku: str
    count: int = 1


@dataclass(frozen=True)
class Order:
    id: int
    lines: list[Line]
    colour: Colour | None = None


@dataclass(frozen=True)
class Parcel:
    id: int


@pytest.fixture
def app() -> Detent:
    return Detent("sqlite:///never-opened.db")


# -- names ----------------------------------------------------------------------------------------------------


def test_a_task_is_named_after_its_function(app: Detent) -> None:
    @app.task
    def welcome(ctx: Context) -> None: ...

    assert welcome.name == f"{__name__}.test_a_task_is_named_after_its_function.<locals>.welcome"
    assert app.find_task(welcome.name) is welcome


def test_a_name_of_its_own_and_aliases(app: Detent) -> None:
    """W6: renaming a function strands no job."""

    @app.task(name="mail.welcome", aliases=["welcome", "greet"])
    def welcome(ctx: Context) -> None:
        """Say hello."""

    assert [app.find_task(name) for name in ("mail.welcome", "welcome", "greet")] == [welcome] * 3
    assert (welcome.__name__, welcome.__doc__, repr(welcome)) == ("welcome", "Say hello.", "<Task mail.welcome>")


def test_an_unknown_task_is_named_with_those_there_are(app: Detent) -> None:
    app.task(name="b")(lambda ctx: None)
    app.task(name="a")(lambda ctx: None)
    with pytest.raises(UnknownTask, match="no task 'c' is declared here; declared: a, b"):
        app.find_task("c")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"name": "mail"}, "the name 'mail' twice"),
        ({"name": "x", "aliases": ["mail"]}, "the name 'mail' twice"),
        ({"name": "x", "aliases": ["x"]}, "the name 'x' twice"),
        ({"name": ""}, "an empty string"),
        ({"name": "a\0b"}, "NUL at character 1"),
        ({"name": "\ud800"}, "the lone surrogate U+D800 at character 0"),
        ({"name": "n" * 201}, "201 bytes"),
        ({"name": 7}, "a value of type int"),
        ({"aliases": "mail"}, "the string 'mail'"),
        ({"queue": ""}, "an empty string"),
        ({"queue": None}, "a value of type NoneType"),
        ({"priority": 1 << 15}, "32768"),
        ({"priority": True}, "True"),
        ({"priority": "high"}, "'high'"),
        ({"timeout": 0}, "0"),
        ({"timeout": "60"}, "'60'"),
        ({"timeout": float("nan")}, "nan"),
        ({"result_ttl": -1}, "-1"),
        ({"unique": "always"}, "'always'"),
        ({"idempotent": "no"}, "'no'"),
        ({"dead_letter": 1}, "1"),
        ({"retry": 3}, "3"),
    ],
)
def test_a_wrong_declaration_is_refused(app: Detent, options: dict[str, Any], found: str) -> None:
    app.task(name="mail")(lambda ctx: None)
    before = app.tasks
    declare: Callable[..., Any] = app.task
    with pytest.raises(InvalidInput) as refusal:
        declare(**options)(lambda ctx: None)
    assert refusal.value.found == found
    assert app.tasks == before


def test_negative_attempts_are_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"retries: found -1; allowed: a whole number from 0 to 10000"):
        Retry(-1)


# -- signatures -----------------------------------------------------------------------------------------------


def positional_only(ctx: Context, user_id: int, /) -> None: ...


def any_number(ctx: Context, *users: int) -> None: ...


def any_name(ctx: Context, **users: int) -> None: ...


def without_context() -> None: ...


def only_by_name(*, ctx: Context) -> None: ...


@pytest.mark.parametrize("function", [positional_only, any_number, any_name, without_context, only_by_name])
def test_what_cannot_be_called_by_name_is_refused(app: Detent, function: Callable[..., None]) -> None:
    with pytest.raises(InvalidArguments) as refusal:
        app.task(function)
    assert function.__name__ in refusal.value.field
    assert app.tasks == {}


def test_types_that_json_cannot_tell_apart_are_refused(app: Detent) -> None:
    with pytest.raises(InvalidArguments, match=r"either\.item: found .* more than one dataclass"):

        @app.task(name="either")
        def either(ctx: Context, item: Order | Parcel) -> None: ...


def test_a_type_that_is_nowhere_is_refused_at_the_call(app: Detent) -> None:
    @app.task(name="lost")
    def lost(ctx: Context, item: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidArguments, match="name 'Nowhere' is not defined"):
        lost.call(1)


# -- calls ----------------------------------------------------------------------------------------------------


@pytest.fixture
def everything(app: Detent) -> Any:
    @app.task(name="everything")
    def everything(
        ctx: Context,
        order: Order,
        at: datetime,
        day: date,
        price: Decimal,
        token: UUID,
        colour: Colour,
        mode: Literal["fast", "safe"],
        pause: timedelta,
        pairs: dict[str, tuple[int, float]],
        note: str | None,
        extra: Any,
        wait: int = 3,
        parcel: Parcel | None = None,
    ) -> None: ...

    return everything


ARGUMENTS: dict[str, Any] = {
    "order": Order(7, [Line("ring", 2), Line("käse")], Colour.BLUE),
    "at": datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    "day": date(2026, 2, 3),
    "price": Decimal("12.50"),
    "token": UUID(int=7),
    "colour": Colour.RED,
    "mode": "safe",
    "pause": timedelta(seconds=90),
    "pairs": {"a": (1, 0.5)},
    "note": None,
    "extra": {"deep": [1, 2, {"er": None}]},
}


def test_arguments_come_back_as_the_types_of_the_signature(everything: Any) -> None:
    """J2: typed, validated at the door."""
    assert everything.decode(everything.call(**ARGUMENTS).payload) == ARGUMENTS


def test_an_argument_left_out_stays_out(everything: Any) -> None:
    """The default of the code that runs the job counts, not that of the code that sent it."""
    assert "wait" not in everything.call(**ARGUMENTS).payload
    told = everything.decode(everything.call(**ARGUMENTS, wait=4, parcel=Parcel(1)).payload)
    assert (told["wait"], told["parcel"]) == (4, Parcel(1))


def test_arguments_by_place_and_by_name_are_the_same_call(app: Detent) -> None:
    @app.task(name="add")
    def add(ctx: Context, a: int, b: int) -> int:
        return a + b

    assert add.call(1, 2) == add.call(b=2, a=1) == add.call(1, b=2)
    assert add.call(1, 2).fingerprint == add.call(b=2, a=1).fingerprint != add.call(2, 1).fingerprint


@pytest.mark.parametrize(
    ("spoiled", "field", "allowed"),
    [
        ({"at": "yesterday"}, "everything.at", "a value that fits"),
        ({"colour": "green"}, "everything.colour", "a value that fits"),
        ({"mode": "slow"}, "everything.mode", "a value that fits"),
        ({"note": 7}, "everything.note", "`str | null`"),
        ({"wait": "3"}, "everything.wait", "`int`"),
        ({"order": {"id": "7", "lines": []}}, "everything.order.id", "`int`"),
        ({"order": Order(7, [Line("a"), Line("b", "two")])}, "everything.order.lines[1].count", "`int`"),  # type: ignore[arg-type]
        ({"pairs": {"a": (1,)}}, "everything.pairs", "`array` of length 2"),
    ],
)
def test_an_argument_of_the_wrong_type_is_named(everything: Any, spoiled: Any, field: str, allowed: str) -> None:
    with pytest.raises(InvalidArguments) as refusal:
        everything.call(**(ARGUMENTS | spoiled))
    assert refusal.value.field.startswith(field)
    assert allowed in refusal.value.allowed


@pytest.mark.parametrize(
    ("args", "kwargs", "found"),
    [
        ((), {}, "missing a required argument: 'user_id'"),
        ((1, 2, 3), {}, "too many positional arguments"),
        ((1,), {"user": 1}, "got an unexpected keyword argument 'user'"),
        ((1,), {"user_id": 1}, "multiple values for argument 'user_id'"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(app: Detent, args: Any, kwargs: Any, found: str) -> None:
    @app.task(name="welcome")
    def welcome(ctx: Context, user_id: int, lang: str = "en") -> None: ...

    call: Callable[..., Any] = welcome.call
    with pytest.raises(InvalidArguments) as refusal:
        call(*args, **kwargs)
    assert (refusal.value.field, refusal.value.found) == ("welcome", found)
    assert refusal.value.allowed == "(user_id: 'int', lang: 'str' = 'en')"


def test_an_option_of_enqueue_among_the_arguments_is_refused_with_the_way_to_give_it(app: Detent) -> None:
    @app.task(name="welcome")
    def welcome(ctx: Context, user_id: int) -> None: ...

    send: Callable[..., Any] = welcome.enqueue
    with pytest.raises(InvalidArguments, match=r"app\.enqueue\(welcome\.call\(\.\.\.\), key=\.\.\.\)"):
        send(user_id=7, key="welcome:7")
    with pytest.raises(InvalidArguments, match="got an unexpected keyword argument 'user'"):
        send(user_id=7, user=7)


def test_a_function_whose_first_parameter_is_no_context_is_refused(app: Detent) -> None:
    """It was declared without a word, and every job of it failed."""

    def typed(user_id: int) -> None: ...

    def untyped(user_id) -> None: ...  # type: ignore[no-untyped-def]

    wrong: list[Callable[..., Any]] = [typed, untyped]
    for function in wrong:
        with pytest.raises(InvalidArguments, match=r"'user_id' as the first parameter.*def send\(ctx: Context"):
            app.task(name="welcome")(function)

    def plain(ctx) -> None: ...  # type: ignore[no-untyped-def]

    def unused(_: object) -> None: ...

    def any_context(c: Any) -> None: ...

    app.task(name="plain")(plain)
    app.task(name="unused")(unused)
    app.task(name="any")(any_context)


@pytest.mark.parametrize(
    ("option", "meant"), [("retries", r"retry\?"), ("time_out", r"timeout\?"), ("colour", "queue, priority")]
)
def test_a_misspelt_option_is_refused_with_the_one_that_was_meant(app: Detent, option: str, meant: str) -> None:
    for declare, what in ((app.task, "task"), (app.batch, "batch"), (app.pipeline, "pipeline")):
        with pytest.raises(InvalidSetting, match=f"{option}.*no option of a {what}.*{meant}"):
            declare(**{option: 3})  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (10**400, "an integer of 1329 bits"),
        ("a\0b", "NUL at character 1"),
        ("\udc80", "the lone surrogate U+DC80 at character 0"),
        ({1: 2}, "the key 1, a value of type int"),
        ({1, 2}, "a value of type set"),
        (b"bytes", "a value of type bytes"),
        (object(), "a value of type object"),
        ("x" * (1 << 20), "1048588 bytes"),
    ],
)
def test_what_the_door_turns_away(app: Detent, value: Any, found: str) -> None:
    """S3"""

    @app.task(name="take")
    def take(ctx: Context, value: Any) -> None: ...

    with pytest.raises(InvalidPayload) as refusal:
        take.call(value=value)
    assert refusal.value.found == found
    assert refusal.value.field.startswith("take")


def test_nesting_is_limited(app: Detent) -> None:
    """S3"""

    @app.task(name="take")
    def take(ctx: Context, value: Any) -> None: ...

    deep: Any = 1
    for _ in range(63):
        deep = [deep]
    assert take.decode(take.call(deep).payload) == {"value": deep}
    with pytest.raises(InvalidPayload, match=r"found nesting deeper than 64; allowed: at most 64 levels"):
        take.call([deep])


def test_the_limits_are_settings() -> None:
    app = Detent("sqlite:///never-opened.db", payload_max=64, depth_max=256, result_max=64)

    @app.task(name="take")
    def take(ctx: Context, value: Any) -> Any: ...

    deep: Any = 1
    for _ in range(20):
        deep = [deep]
    assert take.decode(take.call(deep).payload) == {"value": deep}
    with pytest.raises(InvalidPayload, match="found 66 bytes; allowed: at most 64 bytes"):
        take.call("x" * 54)
    with pytest.raises(InvalidPayload, match="result of take: found 65 bytes; allowed: at most 64 bytes"):
        take.encode_result("x" * 63)


# -- results and direct calls -----------------------------------------------------------------------------------


def test_a_result_comes_back_as_the_return_type(app: Detent) -> None:
    @app.task
    def order(ctx: Context) -> Order | None:
        return None

    value = Order(1, [Line("a")], Colour.RED)
    assert order.decode_result(order.encode_result(value)) == value
    assert order.decode_result(order.encode_result(None)) is None


def test_a_result_of_an_async_function_is_what_it_awaits(app: Detent) -> None:
    @app.task
    async def day(ctx: Context) -> date:
        return date.min

    assert day.is_async
    assert day.decode_result(day.encode_result(date(2026, 1, 1))) == date(2026, 1, 1)


def test_calling_it_directly_just_runs_it(app: Detent) -> None:
    """U1: no record, no conversion, no database."""

    @app.task(queue="math")
    def add(ctx: Context, a: int, b: int = 2) -> int:
        assert ctx is NOBODY
        return a + b

    @app.task
    async def later(ctx: Context, a: int) -> int:
        await asyncio.sleep(0)
        return a + add(ctx, a)

    assert add(NOBODY, 1) == 3
    assert asyncio.run(later(NOBODY, 1)) == 4
