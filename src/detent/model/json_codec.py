"""Checking, encoding and decoding all JSON: payloads, metadata, event payloads, results (S3).

An accepted value is stored as compact JSON text and reads back as the same value on both databases. These values are
refused with `InvalidPayload`, which names the path, what was found there and what is allowed:

- numbers that are not finite as a double: NaN, Infinity, 1e400, an integer of 400 digits. Smaller integers are exact;
  a reader whose numbers are doubles, such as a browser, sees them rounded beyond 2^53.
- NUL and lone surrogates in strings and keys
- keys that are not strings; types that are not JSON's (set, bytes, …)
- nesting deeper than `depth_max`; text longer than `size_max` bytes

Accepted beside JSON's own types: dates, times, UUID and Decimal (as strings), Enum (as its value), dataclasses, attrs
classes, `msgspec.Struct` and pydantic models (as objects), tuples (as arrays), and subclasses of str, int and float. If
a key occurs twice in JSON text, the last value counts, and the returned text has it once.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import functools
import json
import math
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, TypeVar, overload

import msgspec

from detent.errors import InvalidInput, InvalidPayload
from detent.model import pydantic_models

__all__ = [
    "check_text",
    "convert",
    "decode",
    "encode",
    "fingerprint",
    "fits",
    "malformed",
    "reader",
    "text",
    "unique_key",
]

T = TypeVar("T")

_DEPTH_MAX = 64
# Any integer beyond the doubles has at least this many digits.
_DIGITS_SUSPECT = 309
_SURELY_FINITE = 2**63
_EVERY_DIGIT_ZERO = bytes.maketrans(b"123456789", b"000000000")
_SHOWN_MAX = 60

_JSON_TYPES = "null, true, false, numbers, strings, arrays, objects, and what is written as one of them"
_FINITE = "a number that is finite as a double"
_CLEAN_TEXT = "text without NUL and lone surrogates"
_SECRETS = "an id of the secret; or the value itself, if the model has a serializer for this field that returns it"

# Written by msgspec as plain ASCII strings, so there is nothing in them to refuse.
_AS_STRING = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, uuid.UUID, decimal.Decimal)


def encode(value: object, *, field: str, size_max: int, depth_max: int = _DEPTH_MAX) -> str:
    """Return the value as compact JSON text. `InvalidPayload`."""
    try:
        encoded = _encode(value)
    except Exception as error:
        _explain(value, field, depth_max)
        raise InvalidPayload(field, f"a value that cannot be written: {_show(error)}", _JSON_TYPES) from error
    if len(encoded) > size_max:
        raise InvalidPayload(field, f"{len(encoded)} bytes", f"at most {size_max} bytes")
    # Most values read back equal, which proves them: NaN would be written as null, a set as an array, the key 1 as "1".
    # The others (tuples, dates, dataclasses, and everything that is refused) are inspected part by part.
    if not _is_proven(encoded, value, depth_max):
        _explain(value, field, depth_max)
    return encoded.decode()


def encode_scalars(values: dict[str, Any], kinds: Mapping[str, type], *, size_max: int) -> str | None:
    """Return the same text as `encode`, at a third of its cost, if all values are plain numbers and strings of exactly
    these types; None for others, which `encode` has to inspect."""
    for name, value in values.items():
        kind = type(value)
        if kind is not kinds[name]:
            return None
        if kind is str:
            if "\0" in value:
                return None
        elif kind is float:
            if value - value != 0.0:  # infinite, or not a number
                return None
        elif not -_SURELY_FINITE < value < _SURELY_FINITE:
            return None
    try:
        encoded = _encode(values)
    except UnicodeError:
        return None
    return encoded.decode() if len(encoded) <= size_max else None


def check_text(text: str | bytes, *, field: str, size_max: int, depth_max: int = _DEPTH_MAX) -> str:
    """Return JSON text in compact form. `InvalidPayload` as for `encode` of its value."""
    if len(text) > size_max:
        raise InvalidPayload(field, f"more than {size_max} bytes", f"at most {size_max} bytes")
    try:
        encoded = text.encode() if isinstance(text, str) else text
        if len(encoded) > size_max:
            raise InvalidPayload(field, f"{len(encoded)} bytes", f"at most {size_max} bytes")
        value = _decode(encoded)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        _explain_text(text, field, depth_max, error)
    return encode(value, field=field, size_max=size_max, depth_max=depth_max)


@overload
def decode(text: str, *, field: str = ..., depth_max: int = ...) -> Any: ...
@overload
def decode(text: str, type: type[T], *, field: str = ..., depth_max: int = ...) -> T: ...
@overload
def decode(text: str, type: Any, *, field: str = ..., depth_max: int = ...) -> Any: ...
def decode(text: str, type: Any = Any, *, field: str = "payload", depth_max: int = _DEPTH_MAX) -> Any:
    """Return the value of JSON text as `type`. `InvalidPayload` if it does not fit, and as for `encode`."""
    try:
        # Too short for a long integer or deep nesting, as most are.
        if type is not Any and len(text) <= min(2 * depth_max, _DIGITS_SUSPECT) and "\\u0000" not in text:
            return _reader(type).decode(text)
        encoded = text.encode()
        value = _decode(encoded)
        if not _is_sound(encoded, value, depth_max):
            _explain(value, field, depth_max)
        return value if type is Any else _reader(type).decode(encoded)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        _explain_text(text, field, depth_max, error)


def reader(type: Any, *, field: str = "payload", depth_max: int = _DEPTH_MAX) -> Callable[[str], Any]:
    """Return a function that decodes many texts of one type, as `decode` does."""
    read, short = _reader(type).decode, min(2 * depth_max, _DIGITS_SUSPECT)

    def decoded(text: str) -> Any:
        if len(text) <= short and "\\u0000" not in text:
            try:
                return read(text)
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                pass  # explained below
        return decode(text, type, field=field, depth_max=depth_max)

    return decoded


def convert(value: object, type: Any) -> Any:
    """Return a decoded value as `type`. `msgspec.ValidationError` if it does not fit."""
    return msgspec.convert(value, type, dec_hook=_read_other)


def fits(text: str, type: Any) -> bool:
    """Whether encoded text can be read as `type`; `decode` explains why not."""
    try:
        _reader(type).decode(text)
    except (msgspec.MsgspecError, ValueError, TypeError):
        return False
    return True


def fingerprint(task: str, text: str) -> str:
    """Return 32 hex digits that are equal for the same task and the same JSON value, whatever the order of its keys.

    Numbers count as they are written: 1 and 1.0 differ. `text` is encoded JSON.
    """
    ordered = _encode_ordered(_decode(text))
    digest: str = _sha256()(b"\0".join((task.encode(), ordered))).hexdigest()
    return digest[:32]


@functools.cache
def _sha256() -> Callable[[bytes], Any]:
    """Import on first use: hashlib loads OpenSSL, 4 MB that many processes do not need."""
    from hashlib import sha256

    return sha256


def unique_key(task: str, fingerprint: str) -> str:
    """Return the key of a job whose task is unique while pending. The job holds it until its first claim."""
    return f"unique:{task[:300]}:{fingerprint}"


def text(value: str, *, field: str, bytes_max: int, allow_empty: bool = False) -> str:
    """Check a plain string, such as a name, key, queue, tenant, actor or reason, and return it. `InvalidInput`."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"a value of type {type(value).__name__}", "a string")
    if not value and not allow_empty:
        raise InvalidInput(field, "an empty string", f"1 to {bytes_max} bytes of text")
    if fault := _fault_of_text(value):
        raise InvalidInput(field, fault, _CLEAN_TEXT)
    if len(value) > bytes_max or (not value.isascii() and len(value.encode()) > bytes_max):
        raise InvalidInput(field, f"{len(value.encode())} bytes", f"at most {bytes_max} bytes")
    return value


# --- the fast path


def _write_other(value: Any) -> Any:
    """Return the JSON form of a value that msgspec does not write by itself. TypeError for other types."""
    if isinstance(value, str | int | float):
        return _plain(value)
    if pydantic_models.is_model(value):
        return pydantic_models.dumped(value)
    raise TypeError(f"objects of type {type(value).__name__} are not JSON")


def _plain(value: str | int | float) -> str | int | float:
    """Return the plain value of an instance of a subclass, without calling methods of the subclass."""
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value) if isinstance(value, int) else float.__float__(value)


def _read_other(type_: Any, value: Any) -> Any:
    """Return the value of a type that msgspec does not read by itself: the inverse of `_write_other`."""
    if pydantic_models.is_model_type(type_):
        return pydantic_models.validated(type_, _encode(value))
    if isinstance(type_, type):
        if isinstance(value, type_):
            return value
        if type(value) in (str, int, float) and issubclass(type_, type(value)):
            return type_(value)
    raise TypeError(f"a JSON {type(value).__name__} cannot be read as {type_!r}")


_encode = msgspec.json.Encoder(enc_hook=_write_other).encode
_encode_ordered = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder().decode


@functools.lru_cache(maxsize=1024)
def _reader(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_, dec_hook=_read_other)


def _is_proven(encoded: bytes, value: object, depth_max: int) -> bool:
    try:
        decoded = _decode(encoded)
        return bool(decoded == value) and _is_sound(encoded, decoded, depth_max)
    except Exception:
        # A raw fragment that is not JSON, or a type that cannot be compared: the inspection decides.
        return False


def _is_sound(encoded: bytes, decoded: Any, depth_max: int) -> bool:
    """Whether the text surely contains no NUL, no integer that is too long and no nesting that is too deep."""
    return not (_has_fault(encoded) or (_may_be_deep(encoded, depth_max) and _is_deeper(decoded, depth_max)))


def _has_fault(encoded: bytes) -> bool:
    return b"\\u0000" in encoded or (
        len(encoded) >= _DIGITS_SUSPECT and b"0" * _DIGITS_SUSPECT in encoded.translate(_EVERY_DIGIT_ZERO)
    )


def _may_be_deep(encoded: bytes, depth_max: int) -> bool:
    """Whether the text may be too deep: each level takes two bytes and an opening bracket."""
    return len(encoded) > 2 * depth_max and encoded.count(b"[") + encoded.count(b"{") > depth_max


def _is_deeper(decoded: Any, depth_max: int) -> bool:
    level: list[Any] = [[decoded]]
    for _ in range(depth_max + 1):
        parts = (part for whole in level for part in (whole.values() if type(whole) is dict else whole))
        level = [part for part in parts if type(part) is dict or type(part) is list]
        if not level:
            return False
    return True


# --- the slow path: find the part that is refused, and name it


class _FaultFound(Exception):
    """A value that is refused. Its path is built from the inside outwards while the search unwinds."""

    def __init__(self, found: str, allowed: str) -> None:
        self.found = found
        self.allowed = allowed
        self.path: list[str] = []


def _explain(value: object, field: str, depth_max: int) -> None:
    """Raise `InvalidPayload` for the first fault in the value; return if there is none."""
    try:
        _inspect(value, depth_max, depth_max)
    except _FaultFound as fault:
        raise InvalidPayload(field + "".join(reversed(fault.path)), fault.found, fault.allowed) from None


def malformed(error: Exception) -> str:
    """Return what a text has that is not JSON, for the `found` of a refusal. msgspec says it in a sentence."""
    says = _show(error).replace("JSON is malformed", "malformed JSON")
    return says.replace("Input data was truncated", "truncated JSON: its end is missing")


def _explain_text(text: str | bytes, field: str, depth_max: int, error: Exception) -> NoReturn:
    """Raise `InvalidPayload` for text that msgspec refused, with the path if the lenient parser can find it."""
    try:
        _explain(json.loads(text), field, depth_max)
    except RecursionError:
        raise InvalidPayload(field, f"nesting deeper than {depth_max}", f"at most {depth_max} levels") from None
    except ValueError as refusal:
        if isinstance(refusal, InvalidPayload):
            raise
    if not isinstance(error, msgspec.ValidationError):
        raise InvalidPayload(field, malformed(error), "one JSON value as UTF-8 text") from error
    # msgspec says: "Expected `int`, got `str` - at `$.items[3].name`".
    if (fault := pydantic_models.fault_of(error.__cause__)) is not None:
        inner, found, allowed = fault
        path = str(error).rpartition(" - at `$")[2].rstrip("`")
        raise InvalidPayload(f"{field}{path}{inner}", found, allowed) from error
    says, _, path = str(error).partition(" - at `$")
    wanted, _, got = says.partition(", got ")
    if wanted.startswith("Expected "):
        found, allowed = got or "something else", wanted.removeprefix("Expected ")
    else:
        found = says.replace("Object contains unknown", "the unknown").replace("Object missing required", "no")
        allowed = "a value that fits the declared type"
    raise InvalidPayload(field + path.rstrip("`"), found, allowed) from error


def _inspect(value: Any, room: int, depth_max: int) -> None:
    """Raise `_FaultFound` for the first fault in the value. `room` limits the recursion."""
    kind = type(value)
    if kind is str:
        if fault := _fault_of_text(value):
            raise _FaultFound(fault, _CLEAN_TEXT)
    elif value is None or kind is bool or isinstance(value, _AS_STRING):
        return
    elif isinstance(value, enum.Enum):
        _inspect(value.value, room, depth_max)
    elif kind is int or kind is float:
        if not _is_finite(value):
            raise _FaultFound(_show(value), _FINITE)
    elif isinstance(value, str | int | float):
        _inspect(_plain(value), room, depth_max)
    elif isinstance(value, dict):
        _inspect_parts(value.items(), _key_step, room, depth_max)
    elif isinstance(value, list | tuple):
        _inspect_parts(enumerate(value), _index_step, room, depth_max)
    else:
        _inspect_parts(_fields_of(value), _key_step, room, depth_max)


def _inspect_parts(parts: Iterable[tuple[Any, Any]], step: Any, room: int, depth_max: int) -> None:
    if room < 1:
        raise _FaultFound(f"nesting deeper than {depth_max}", f"at most {depth_max} levels")
    for key, part in parts:
        if step is _key_step and (not isinstance(key, str) or _fault_of_text(key)):
            found = _fault_of_text(key) if isinstance(key, str) else f"a value of type {type(key).__name__}"
            raise _FaultFound(f"the key {_show(key)}, {found}", f"keys that are strings, {_CLEAN_TEXT}")
        try:
            _inspect(part, room - 1, depth_max)
        except _FaultFound as fault:
            fault.path.append(step(key))
            raise


def _fields_of(value: Any) -> Iterable[tuple[str, Any]]:
    """Return the fields of a value that is written as a JSON object. `_FaultFound` for other types."""
    if isinstance(value, msgspec.Struct):
        return _set_fields(value, zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True))
    if isinstance(value, type):
        raise _FaultFound(f"the class {value.__name__}", _JSON_TYPES)
    if dataclasses.is_dataclass(value):
        return _set_fields(value, ((field.name, field.name) for field in dataclasses.fields(value)))
    if hasattr(value, "__attrs_attrs__"):
        return _set_fields(value, ((field.name, field.name) for field in value.__attrs_attrs__))
    if pydantic_models.is_model(value):
        try:
            dumped = pydantic_models.dumped(value)
        except pydantic_models.MaskedSecret as error:
            raise _FaultFound(str(error), _SECRETS) from None
        return dumped.items() if isinstance(dumped, dict) else [("root", dumped)]
    raise _FaultFound(f"a value of type {type(value).__name__}", _JSON_TYPES)


def _set_fields(value: object, names: Iterable[tuple[str, str]]) -> Iterable[tuple[str, Any]]:
    parts = ((shown, getattr(value, name, msgspec.UNSET)) for shown, name in names)
    return (part for part in parts if part[1] is not msgspec.UNSET)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def _fault_of_text(value: str) -> str:
    """Return what is wrong with a string; empty if nothing is."""
    if "\0" in value:
        return f"NUL at character {value.index(chr(0))}"
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return f"the lone surrogate U+{ord(value[error.start]):04X} at character {error.start}"
    return ""


def _key_step(key: str) -> str:
    return f".{key}" if key.isidentifier() and len(key) <= _SHOWN_MAX else f"[{_show(key)}]"


def _index_step(index: int) -> str:
    return f"[{index}]"


def _show(value: object) -> str:
    """Return a printable form of limited length."""
    if isinstance(value, int) and value.bit_length() > 192:
        return f"an integer of {value.bit_length()} bits"
    shown = str(value) if isinstance(value, Exception) else ascii(value)
    return shown if len(shown) <= _SHOWN_MAX else f"{shown[:_SHOWN_MAX]}…"
