"""The JSON door: one verdict for a value and for its text, and an error that names the culprit."""

from __future__ import annotations

import json
import math
import random
import uuid
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from detent.errors import InvalidInput, InvalidPayload
from detent.model.json_codec import check_text, decode, encode, encode_scalars, fingerprint, text

SIZE_MAX = 1_000_000

KEYS = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | KEYS
VALUES = st.recursive(LEAVES, lambda part: st.lists(part, max_size=4) | st.dictionaries(KEYS, part, max_size=4))

# One half of a surrogate pair only: both halves side by side are two faults in Python, but one character in JSON text.
BAD_TEXT = st.text(alphabet=st.sampled_from("ab\x00\udfff\\u0"), max_size=6)
ODD_LEAVES = LEAVES | BAD_TEXT | st.sampled_from([math.nan, math.inf, -math.inf, 10**308, 10**309, -(10**400)])
ODD_VALUES = st.recursive(ODD_LEAVES, lambda part: st.lists(part, max_size=4) | st.dictionaries(BAD_TEXT, part))


def put(value: object, **limits: int) -> str:
    return encode(value, field="payload", **{"size_max": SIZE_MAX, **limits})


def nested(levels: int, inner: object = 1) -> object:
    for level in range(levels):
        inner = [inner] if level % 2 else {"a": inner}
    return inner


class Color(Enum):
    RED = "red"
    BAD = "a\x00"


class Size(IntEnum):
    BIG = 3


class Name(str):
    def __str__(self) -> str:
        return "something else"


class Count(int):
    pass


Point = namedtuple("Point", "x y")


@dataclass
class Order:
    id: int
    note: Any = None


class Row(msgspec.Struct, rename="camel"):
    row_id: int
    some_value: Any = msgspec.UNSET


class Part(BaseModel):
    b: int


class Model(BaseModel):
    a: Part | None = None
    price: float = 1.5


KINDS = {"a": int, "b": float, "c": str, "d": bool}


def glance(value: dict[str, Any], size_max: int = SIZE_MAX) -> str | None:
    return encode_scalars(value, KINDS, size_max=size_max)


@pytest.mark.parametrize(
    "value",
    [
        *({"c": "a\0b"}, {"c": "\udfff"}, {"a": 10**309}, {"a": -(10**400)}),
        *({"b": math.nan}, {"b": math.inf}, {"b": -math.inf}, {"a": True}, {"b": 1}, {"d": 1}, {"c": Name("x")}),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_a_glance_leaves_to_the_closer_look(value: dict[str, Any]) -> None:
    """J2"""
    assert glance({"d": True, **value}) is None


@given(
    st.fixed_dictionaries(
        {}, optional={"a": st.integers(), "b": st.floats(), "c": BAD_TEXT | KEYS, "d": st.booleans() | ODD_LEAVES}
    )
)
def test_a_glance_never_lets_in_what_the_door_refuses(value: dict[str, Any]) -> None:
    """J2"""
    if (seen := glance(value)) is not None:
        assert seen == put(value)
        assert all(type(part) is KINDS[name] for name, part in value.items())


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), KEYS, st.booleans())
def test_a_glance_is_enough_for_plain_values(a: int, b: float, c: str, d: bool) -> None:
    value = {"a": a, "b": b, "c": c, "d": d}
    assert glance(value) == put(value)
    assert glance(value, len(put(value).encode())) is not None
    assert glance(value, len(put(value).encode()) - 1) is None


@given(VALUES)
def test_what_passes_reads_back_the_same(value: object) -> None:
    """S3: JSON goes through the door unchanged."""
    written = put(value)
    assert decode(written) == value
    assert check_text(written, field="payload", size_max=SIZE_MAX) == written


@given(ODD_VALUES)
def test_a_value_and_its_text_get_the_same_verdict(value: object) -> None:
    """S3: the same verdict whether it came as a value or as text, down to the path."""

    def verdict(door: Any, given: object) -> object:
        try:
            return door(given, field="payload", size_max=SIZE_MAX)
        except InvalidPayload as refusal:
            return refusal.field, refusal.allowed

    assert verdict(encode, value) == verdict(check_text, json.dumps(value))
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return
    assert verdict(encode, value) == verdict(check_text, json.dumps(value, ensure_ascii=False).encode())


cycle: list[Any] = []
cycle.append({"again": cycle})

REFUSED = [
    (math.nan, "payload", "nan"),
    ({"a": [1.0, math.inf]}, "payload.a[1]", "inf"),
    ({"a": None, "b": {"c": -math.inf}}, "payload.b.c", "-inf"),
    ((None, math.nan), "payload[1]", "nan"),
    (Order(1, note=math.nan), "payload.note", "nan"),
    ([Row(1, some_value=math.nan)], "payload[0].someValue", "nan"),
    (Model(price=math.nan), "payload.price", "nan"),
    ("a\x00", "payload", "NUL at character 1"),
    ({"items": [0, 1, 2, {"name": "\x00"}]}, "payload.items[3].name", "NUL"),
    ({"a\x00": 1}, "payload", "NUL"),
    ({"ok": {"": "x\x00"}}, "payload.ok['']", "NUL"),
    ({"two words": "\x00"}, "payload['two words']", "NUL"),
    (Color.BAD, "payload", "NUL"),
    ("\ud800", "payload", "lone surrogate U+D800 at character 0"),
    (["é\udfff"], "payload[0]", "lone surrogate U+DFFF at character 1"),
    ({"\ud83d": 1}, "payload", "lone surrogate"),
    (Name("\x00"), "payload", "NUL"),
    ({1: 2}, "payload", "type int"),
    ({"a": {None: 2}}, "payload.a", "type NoneType"),
    ({True: 2}, "payload", "type bool"),
    ({1.5: 2}, "payload", "type float"),
    ({(1, 2): 2}, "payload", "type tuple"),
    ({uuid.UUID(int=1): 2}, "payload", "type UUID"),
    ({1, 2}, "payload", "type set"),
    ({"a": frozenset()}, "payload.a", "type frozenset"),
    (Order(1, note={"s": {1}}), "payload.note.s", "type set"),
    (b"x", "payload", "type bytes"),
    ([bytearray(b"x")], "payload[0]", "type bytearray"),
    (memoryview(b"x"), "payload", "type memoryview"),
    (Order(1, note=b"x"), "payload.note", "type bytes"),
    (object(), "payload", "type object"),
    ([print], "payload[0]", "type builtin_function_or_method"),
    (1j, "payload", "type complex"),
    (Order, "payload", "the class Order"),
    (Model, "payload", "the class Model"),
    (ValueError("x"), "payload", "type ValueError"),
    (iter(()), "payload", "type tuple_iterator"),
    (range(3), "payload", "type range"),
    (msgspec.Raw(b"{"), "payload", "type Raw"),
    ({"a": msgspec.Raw(b"[1]")}, "payload.a", "type Raw"),
    (10**309, "payload", "an integer of"),
    ([-(10**400)], "payload[0]", "an integer of"),
    ({"n": 10**5000}, "payload.n", "an integer of"),
    (cycle, "payload[0].again[0].again", "nesting deeper than 64"),
    (nested(65), "payload[0].a", "nesting deeper than 64"),
    (nested(100_000), "payload[0].a", "nesting deeper than 64"),
    ({"text": "[" * 100, "deep": nested(64)}, "payload.deep", "nesting deeper than 64"),
]


@pytest.mark.parametrize(("value", "path", "found"), REFUSED, ids=range(len(REFUSED)))
def test_a_hostile_value_is_refused_by_path(value: object, path: str, found: str) -> None:
    """S3: bad input gets a clear error that says where, what was found and what is allowed."""
    with pytest.raises(InvalidPayload) as refusal:
        put(value)
    if "nesting" in found:
        assert refusal.value.field.startswith(path) or refusal.value.field.startswith("payload.a[0]")
    else:
        assert refusal.value.field == path
    assert found in refusal.value.found
    assert refusal.value.allowed
    assert len(str(refusal.value)) < 1_000
    str(refusal.value).encode()


PASSES = [
    (None, "null"),
    ([True, False], "[true,false]"),
    ((1, (2,)), "[1,[2]]"),
    (Point(1, 2), "[1,2]"),
    ({"b": 1, "a": "żółw 🐢\u2028\x7f\x01"}, '{"b":1,"a":"żółw 🐢\u2028\x7f\\u0001"}'),
    (r"\u0000", r'"\\u0000"'),
    ("null nan NaN Infinity", '"null nan NaN Infinity"'),
    (2**63, "9223372036854775808"),
    (10**308, "1" + "0" * 308),
    ("7" * 400, f'"{"7" * 400}"'),
    (1e308, "1e308"),
    (0.1, "0.1"),
    ({"a": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)}, '{"a":"2026-01-02T03:04:05Z"}'),
    (date(2026, 1, 2), '"2026-01-02"'),
    (timedelta(days=1), '"P1D"'),
    (uuid.UUID(int=7), '"00000000-0000-0000-0000-000000000007"'),
    (Decimal("1.50"), '"1.50"'),
    ([Color.RED, Size.BIG], '["red",3]'),
    ([Name("bob"), Count(3), {Name("k"): 1}], '["bob",3,{"k":1}]'),
    (OrderedDict(z=1, a=2), '{"z":1,"a":2}'),
    (Order(1, note=(1, 2)), '{"id":1,"note":[1,2]}'),
    ([Row(1)], '[{"rowId":1}]'),
    (Model(a=Part(b=1)), '{"a":{"b":1},"price":1.5}'),
]


@pytest.mark.parametrize(("value", "written"), PASSES, ids=range(len(PASSES)))
def test_what_is_written_as_json_passes(value: object, written: str) -> None:
    assert put(value) == written
    assert check_text(written, field="payload", size_max=SIZE_MAX) == written


def test_depth_is_counted_to_the_level() -> None:
    """S3: 64 levels pass, 65 do not, whatever shape they have and however they came."""
    for levels in (1, 63, 64):
        assert decode(put(nested(levels))) == nested(levels)
        put((nested(levels - 1),))
    for value in (nested(65), [1, "[", nested(64)], (nested(64),), Order(1, nested(64))):
        with pytest.raises(InvalidPayload, match="nesting deeper than 64"):
            put(value)
    put([{"a": [1]} for _ in range(1_000)])
    put(nested(3), depth_max=3)
    with pytest.raises(InvalidPayload, match="nesting deeper than 3"):
        put(nested(4, "x" * 10), depth_max=3)


def test_size_is_counted_in_bytes() -> None:
    """S3: a size limit on everything that is stored."""
    assert put("é" * 4, size_max=10) == '"éééé"'
    for door, value in ((encode, "é" * 5), (check_text, '"éééée"'), (check_text, b" " * 100_000_000)):
        with pytest.raises(InvalidPayload) as refusal:
            door(value, field="metadata", size_max=10)
        assert refusal.value.field == "metadata"
        assert refusal.value.allowed == "at most 10 bytes"


@pytest.mark.parametrize(
    ("given_text", "path", "found"),
    [
        ("", "payload", ""),
        ("{", "payload", "truncated"),
        ("[1] 2", "payload", "trailing"),
        ("{'a': 1}", "payload", "malformed"),
        ('{"a": [NaN]}', "payload.a[0]", "nan"),
        ('{"a": -Infinity}', "payload.a", "-inf"),
        ('[1, {"x": 1e400}]', "payload[1].x", "inf"),
        ('"a\\u0000"', "payload", "NUL"),
        ('{"a": {"\\u0000": 1}}', "payload.a", "NUL"),
        ('{"a": "\\ud800"}', "payload.a", "lone surrogate U+D800"),
        ('{"a": ["\\udc00\\ud800"]}', "payload.a[0]", "lone surrogate U+DC00"),
        ('["\ud800"]', "payload[0]", "lone surrogate U+D800"),
        ('"\x00"', "payload", "malformed"),
        ("[" * 65 + "]" * 65, "payload" + "[0]" * 64, "nesting deeper than 64"),
        ("[" * 400_000 + "]" * 400_000, "payload", "nesting deeper than 64"),
        ("[" * 500_000, "payload", "nesting deeper than 64"),
        ("7" * 400, "payload", "an integer of"),
        ("7" * 5000, "payload", "out of range"),
        (b"\xff", "payload", "malformed"),
        (b'"\xed\xa0\x80"', "payload", ""),
        (b'"\xc0\x80"', "payload", ""),
        ('{"a": 1}'.encode("utf-16"), "payload", ""),
    ],
)
def test_hostile_text_is_refused_by_path(given_text: str | bytes, path: str, found: str) -> None:
    """S3: NUL, lone surrogates, NaN and deep nesting in text from outside get a clear error."""
    with pytest.raises(InvalidPayload) as refusal:
        check_text(given_text, field="payload", size_max=SIZE_MAX)
    assert refusal.value.field == path
    assert found in refusal.value.found
    assert refusal.value.allowed


@given(st.binary(max_size=40) | st.text(alphabet=st.sampled_from('[]{}",:\\u0d8eE+-.N "'), max_size=30))
def test_no_text_does_anything_but_pass_or_be_refused(given_text: str | bytes) -> None:
    try:
        written = check_text(given_text, field="payload", size_max=SIZE_MAX)
    except InvalidPayload:
        return
    assert put(json.loads(given_text)) == written


def test_text_from_outside_is_given_back_in_the_doors_own_form() -> None:
    given_text = ' {"a" : 1, "b":"\\u00e9\\/", "a" : [ ] } '
    assert check_text(given_text, field="payload", size_max=100) == '{"a":[],"b":"é/"}'
    assert check_text(given_text.encode(), field="payload", size_max=100) == '{"a":[],"b":"é/"}'


def test_reading_as_a_type() -> None:
    """J2: payloads are typed, and validated at the door."""
    assert decode('{"id":1,"note":"x"}', Order) == Order(1, "x")
    assert decode('{"rowId":1}', Row) == Row(1)
    assert decode('["2026-01-02"]', list[date]) == [date(2026, 1, 2)]
    assert decode("3", Count) == Count(3)
    assert type(decode('"x"', Name)) is Name
    assert decode('{"a":{"b":1}}', dict[str, Part]) == {"a": Part(b=1)}
    assert decode("1", int | None) == 1
    assert decode('{"a":1}', dict[str, object]) == {"a": 1}


@pytest.mark.parametrize(
    ("given_text", "kind", "path", "found", "allowed"),
    [
        ('{"id":"x"}', Order, "result.id", "`str`", "`int`"),
        ("[[1],[2,null]]", list[list[int]], "result[1][1]", "`null`", "`int`"),
        ('{"note":1}', Order, "result", "no field `id`", "type"),
        ("[1]", list[Model], "result[0]", "1", "object"),
        ('[{"a":{"b":"x"}}]', list[Model], "result[0].a.b", "`str`", "a valid integer"),
        ('["x"]', list[Count], "result[0]", "cannot be read as", "type"),
        ('{"id":NaN}', Order, "result.id", "nan", "finite"),
        ('{"id":1,"note":"\\u0000"}', Order, "result.note", "NUL", "NUL"),
        ('{"id":1,"note":"\\ud800"}', Order, "result.note", "lone surrogate", "surrogates"),
        ("[" * 70 + "]" * 70, Any, "result" + "[0]" * 64, "nesting", "64"),
        ("[1,", Any, "result", "truncated", "JSON"),
        ("\ud800", Any, "result", "can't encode", "JSON"),
    ],
)
def test_reading_refuses_what_does_not_fit(given_text: str, kind: Any, path: str, found: str, allowed: str) -> None:
    with pytest.raises(InvalidPayload) as refusal:
        decode(given_text, kind, field="result")
    assert refusal.value.field == path
    assert found in refusal.value.found
    assert allowed in refusal.value.allowed


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same JSON value with the keys of every object in another order."""
    if isinstance(value, list):
        return [shuffled(part, chance) for part in value]
    if isinstance(value, dict):
        return {key: shuffled(value[key], chance) for key in chance.sample(list(value), len(value))}
    return value


@given(VALUES, st.randoms(use_true_random=False))
def test_a_fingerprint_does_not_depend_on_the_order_of_keys(value: object, chance: random.Random) -> None:
    """J3: the same payload under the same key is the same job."""
    assert fingerprint("task", put(value)) == fingerprint("task", put(shuffled(value, chance)))


@given(VALUES, VALUES)
def test_different_values_have_different_fingerprints(one: object, other: object) -> None:
    """J3: another payload under the same key is a conflict."""
    assert (fingerprint("task", put(one)) == fingerprint("task", put(other))) == (
        json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    )


def test_fingerprints_are_stable_across_versions_and_tell_tasks_apart() -> None:
    """J3: a key outlives the process, so its fingerprint may never change."""
    assert fingerprint("mail", '{"a":1,"b":[2,null]}') == "04b498593ec78162c3e1ef51641774fb"
    assert fingerprint("mail2", "1") != fingerprint("mail", "21")
    assert fingerprint("mail", "1") != fingerprint("other", "1")


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("", "empty"),
        ("a\x00", "NUL at character 1"),
        ("\udcff", "lone surrogate U+DCFF"),
        ("k" * 10_000, "10000 bytes"),
        ("é" * 300, "600 bytes"),
        (b"key", "type bytes"),
        (7, "type int"),
        (None, "type NoneType"),
    ],
)
def test_a_plain_string_is_checked_by_name(value: Any, found: str) -> None:
    """S3: a key of 10 kB, a NUL in a name: refused by name, with what is allowed."""
    with pytest.raises(InvalidInput) as refusal:
        text(value, field="key", bytes_max=512)
    assert refusal.value.field == "key"
    assert found in refusal.value.found
    assert not isinstance(refusal.value, InvalidPayload)


def test_a_plain_string_that_fits_is_given_back() -> None:
    assert text("é" * 256, field="key", bytes_max=512) == "é" * 256
    assert text("", field="tenant", bytes_max=512, allow_empty=True) == ""
