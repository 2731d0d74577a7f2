"""Types of arguments and results: what is stored comes back as it was, and the rest is refused at declaration."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypedDict, TypeVar
from uuid import UUID

import attrs
import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field, HttpUrl, RootModel, SecretStr, computed_field, field_serializer
from pydantic.dataclasses import dataclass as pydantic_dataclass

from detent import Change, Context, Detent
from detent.declare.task import AnyTask
from detent.errors import InvalidArguments, InvalidPayload, InvalidSetting
from detent.testing.harness import Harness

T = TypeVar("T")


class Line(BaseModel):
    sku: str
    count: int = Field(default=1, gt=0)


class Order(BaseModel):
    id: int
    lines: list[Line] = []
    placed: datetime | None = None
    tags: set[str] = set()


class Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    at: datetime
    price: Decimal

    @computed_field  # type: ignore[prop-decorator]
    @property
    def shown(self) -> str:
        return f"{self.price} €"


class Renamed(BaseModel):
    order_id: int = Field(alias="orderId")
    note: str = Field("", validation_alias="remark", serialization_alias="comment")


class Box(BaseModel, Generic[T]):
    value: T


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"


class Pet(RootModel[Annotated[Cat | Dog, Field(discriminator="kind")]]):
    pass


class Login(BaseModel):
    password: SecretStr


class Sealed(BaseModel):
    password: SecretStr

    @field_serializer("password", when_used="json")
    def _plain(self, value: SecretStr) -> str:
        return value.get_secret_value()


@dataclass
class Parcel:
    order: Order
    weight: Decimal = Decimal(1)


@dataclass
class Tagged:
    tags: set[str] = field(default_factory=set)


@attrs.define
class Crate:
    lines: list[Line]


class Row(msgspec.Struct):
    order: Order | None = None


class Point(NamedTuple):
    x: int
    y: int


class Address(TypedDict):
    city: str


class Colour(Enum):
    RED = "red"


class Size(IntEnum):
    BIG = 3


@pydantic_dataclass
class Hand:
    fingers: int


class Socket:
    """A class that nothing can write as JSON."""


ORDER = Order(id=7, lines=[Line(sku="ring")], placed=datetime(2026, 1, 2, tzinfo=UTC), tags={"new"})


def declared(hint: Any, *, result: Any = None, name: str = "take") -> AnyTask:
    def take(ctx: Context, item: Any) -> Any: ...

    take.__annotations__ |= {"item": hint, "return": result}
    return Detent("sqlite:///never-opened.db").task(name=name)(take)


CARRIED: list[tuple[Any, Any]] = [
    (Order, ORDER),
    (list[Order], [ORDER]),
    (dict[str, Order], {"a": ORDER}),
    (Order | None, None),
    (Strict, Strict(at=datetime(2026, 1, 2, tzinfo=UTC), price=Decimal("1.50"))),
    (Renamed, Renamed.model_validate({"orderId": 7, "remark": "fragile"})),
    (Box[int], Box[int](value=1)),
    (Pet, Pet(Dog())),
    (Sealed, Sealed(password=SecretStr("open sesame"))),
    (Parcel, Parcel(ORDER)),
    (Crate, Crate([Line(sku="ring")])),
    (Row, Row(ORDER)),
    (Hand, Hand(5)),
    (Point, Point(1, 2)),
    (Address, {"city": "Rome"}),
    (Colour, Colour.RED),
    (Size, Size.BIG),
    (Literal["a", 1], "a"),
    (datetime, datetime(2026, 1, 2, 3, tzinfo=UTC)),
    (date, date(2026, 1, 2)),
    (timedelta, timedelta(days=1, seconds=2)),
    (Decimal, Decimal("1.50")),
    (UUID, UUID(int=7)),
    (tuple[int, str], (1, "a")),
    (object, {"a": 1}),
]


@pytest.mark.parametrize(("hint", "value"), CARRIED, ids=lambda one: str(getattr(one, "__name__", "-"))[:20])
def test_a_value_comes_back_as_it_was(hint: Any, value: Any) -> None:
    """J2: as an argument, and as a result."""
    task = declared(hint, result=hint)
    found = task.decode(task.call(value).payload)["item"]
    assert (found, type(found)) == (value, type(value))
    assert task.decode_result(task.encode_result(value)) == value


REFUSED: list[tuple[Any, str, str]] = [
    (set[str], "take.item", "a set"),
    (Tagged, "take.item.tags", "a set"),
    (bytes, "take.item", "bytes"),
    (list[Socket], "take.item[…]", f"the type {__name__}.Socket"),
    (Path, "take.item", "Path"),
    (HttpUrl, "take.item", "HttpUrl"),
    (dict[int, str], "take.item", "keys that are not strings"),
    (Callable[[], int], "take.item", "Callable"),
    (Cat | Dog, "take.item", "more than one custom type"),
    (Annotated[int, Field(gt=0)], "take.item", "FieldInfo outside of a model"),
]


@pytest.mark.parametrize(("hint", "path", "found"), REFUSED, ids=range(len(REFUSED)))
def test_a_type_that_json_cannot_carry_is_refused_at_declaration(hint: Any, path: str, found: str) -> None:
    """J2: and not by the first call, or after the job has done its work."""
    for options, where in (({}, path), ({"result": hint}, path.replace("take.item", "result of take"))):
        with pytest.raises(InvalidArguments) as refusal:
            declared(int if options else hint, **options)
        assert refusal.value.field == where
        assert found in refusal.value.found


def test_a_parameter_that_a_job_leaves_out_may_have_any_type() -> None:
    def take(ctx: Context, item: int, socket: Socket | None = None) -> None: ...

    task = Detent("sqlite:///never-opened.db").task(take)
    assert task.call(7).payload == '{"item":7}'


def test_fields_of_batches_are_checked_too() -> None:
    @dataclass
    class Reprice:
        shops: set[str]

        def targets(self) -> None: ...

        def preview(self, ref: str) -> Any: ...

        def apply(self, ctx: Context, ref: str, change: Change[int]) -> None: ...

    with pytest.raises(InvalidSetting, match=r"Reprice\.shops: found a set"):
        Detent("sqlite:///never-opened.db").batch(Reprice)


@pytest.mark.parametrize(
    ("given", "path", "found", "allowed"),
    [
        ({"id": "seven"}, "take.item.id", "`str`", "a valid integer, unable to parse string as an integer"),
        (
            {"id": 7, "lines": [{"sku": "a"}, {"sku": "b", "count": 0}]},
            "take.item.lines[1].count",
            "0",
            "greater than 0",
        ),
        ({"lines": []}, "take.item.id", "no value", "a value, since the field is required"),
        (Order.model_construct(lines=[]), "take.item.id", "no value", "a value, since the field is required"),
        (7, "take.item", "7", "an object"),
    ],
)
def test_a_call_names_the_field_of_the_model(given: Any, path: str, found: str, allowed: str) -> None:
    """J2: a value that does not fit is refused when the call is made, by the path of its field."""
    with pytest.raises(InvalidArguments) as refusal:
        declared(Order).call(given)
    assert (refusal.value.field, refusal.value.found, refusal.value.allowed) == (path, found, allowed)


def test_a_secret_is_not_stored_as_asterisks() -> None:
    """The function would log in with ten asterisks."""
    with pytest.raises(InvalidPayload, match=r"take\.item: found a secret that pydantic writes as asterisks"):
        declared(Login).call(Login(password=SecretStr("x")))


def test_models_through_jobs_steps_signals_and_batches(detent: Harness) -> None:
    """J2: models wherever a value is stored."""
    app = detent.app
    applied: list[Change[Order]] = []

    @app.task(name="pack")
    def pack(ctx: Context, order: Order) -> Line:
        return order.lines[0]

    def load(order: Order) -> Order:
        return order.model_copy(update={"tags": {"loaded"}})

    @app.workflow(name="ship")
    def ship(ctx: Any, order: Order) -> Order:
        loaded = ctx.step("load", load, order)
        line = ctx.wait_for("line", Line)
        return Order(id=loaded.id, lines=[line], tags=loaded.tags)

    @app.batch(name="rename")
    @dataclass
    class Rename:
        template: Order

        def targets(self) -> list[str]:
            return ["a"]

        def preview(self, ref: str) -> Change[Order]:
            return Change(before=self.template, after=Order(id=8))

        def apply(self, ctx: Context, ref: str, change: Change[Order]) -> None:
            applied.append(change)

    packed, shipped = pack.enqueue(ORDER), ship.enqueue(order=ORDER)
    run = app.runs.preview(Rename(ORDER))
    detent.work()
    shipped.signal("line", Line(sku="chain"))
    run.refresh().apply()
    detent.work()
    assert packed.refresh().result == Line(sku="ring")
    assert shipped.refresh().result == Order(id=7, lines=[Line(sku="chain")], tags={"loaded"})
    assert applied == [Change(before=ORDER, after=Order(id=8))]


def test_pydantic_is_not_imported_unless_it_is_used() -> None:
    """It takes a tenth of a second and 20 MB, for each process of a worker."""
    code = """
import sys
from dataclasses import dataclass
from detent import Context, Detent
@dataclass
class Line:
    sku: str
app = Detent("sqlite:///never-opened.db")
@app.task
def pack(ctx: Context, line: Line) -> Line: ...
pack.decode(pack.call(Line("ring")).payload), pack.decode_result(pack.encode_result(Line("ring")))
sys.exit("pydantic" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
