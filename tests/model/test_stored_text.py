"""Whatever a failing handler says reaches the record."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.model.stored_text import error_text, message_text

ANY_TEXT = st.text(alphabet=st.characters(), max_size=200)  # lone surrogates and NUL included


def caught(error: BaseException, cause: BaseException | None = None) -> BaseException:
    """The error with a traceback of its own."""
    try:
        raise error from cause
    except BaseException as raised:
        return raised


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


class Quitter(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class NotText(Exception):
    def __str__(self) -> Any:
        return 42


class Liar(Exception):
    @property
    def __cause__(self) -> BaseException | None:  # type: ignore[override]
        raise RuntimeError("no cause to speak of")


def assert_storable(text: str, bytes_max: int) -> None:
    assert len(text.encode()) <= bytes_max
    assert "\x00" not in text


def test_the_whole_chain_is_told() -> None:
    """J10: failed for good means with the whole error chain."""
    told = error_text(caught(ValueError("outer"), cause=caught(KeyError("inner"))))
    assert "KeyError: 'inner'" in told
    assert "ValueError: outer" in told
    assert told.index("inner") < told.index("outer")
    assert "direct cause" in told
    assert "in caught" in told


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("a\x00b", "a\ufffdb"),
        ("a\ud800b", "a\ufffdb"),
        ("\udcff\udc00", "\ufffd\ufffd"),
        ("żółw 🐢", "żółw 🐢"),
        ("\x1b[31m\x7f", "\x1b[31m\x7f"),
        ("", ""),
    ],
)
def test_what_no_database_takes_is_replaced_and_the_rest_kept(message: str, told: str) -> None:
    """S3: NUL and lone surrogates in an error never stop its record."""
    assert error_text(message) == told
    assert message_text(message) == told
    assert error_text(caught(ValueError(message))).endswith(f"ValueError: {told}" if told else "ValueError")


@pytest.mark.parametrize("kind", [Unspeakable, Quitter, NotText, Liar])
def test_an_exception_that_cannot_speak_is_still_named(kind: type[Exception]) -> None:
    told = error_text(caught(kind("x")))
    assert kind.__name__ in told
    assert_storable(told, 16_384)
    assert message_text(kind("x"))


def test_a_chain_that_bites_its_tail_ends() -> None:
    first, second = caught(ValueError("first")), caught(KeyError("second"))
    first.__cause__, second.__cause__ = second, first
    told = error_text(first)
    assert "first" in told
    assert "second" in told
    lonely = caught(ValueError("lonely"))
    lonely.__context__ = lonely
    assert "lonely" in error_text(lonely)


def test_a_very_long_chain_and_a_deep_stack_are_bounded() -> None:
    error: BaseException = ValueError("innermost")
    for step in range(2_000):
        error = caught(RuntimeError(f"step {step}"), cause=error)
    told = error_text(error)
    assert_storable(told, 16_384)
    assert "innermost" in told
    assert told.endswith("step 1999")

    def dig(depth: int) -> None:
        if depth == 0:
            raise ValueError("bottom")
        dig(depth - 1)

    with pytest.raises(ValueError, match="bottom") as deep:
        dig(300)
    assert error_text(deep.value).count("in dig") <= 20


def test_an_exception_group_is_told() -> None:
    told = error_text(caught(ExceptionGroup("several", [ValueError("one\x00"), KeyError("two")])))
    assert "ValueError: one\ufffd" in told
    assert "KeyError: 'two'" in told


def test_five_megabytes_are_cut_with_their_length_and_hash() -> None:
    """G6: harm is bounded; what was cut can be recognised."""
    message = "start " + "é" * 2_500_000 + " end"
    told = error_text(message)
    assert_storable(told, 16_384)
    assert len(told.encode()) > 16_000
    assert told.startswith("start é")
    assert told.endswith("é end")
    assert f"{len(message.encode())} bytes" in told
    assert hashlib.sha256(message.encode()).hexdigest()[:12] in told
    raised = error_text(caught(ValueError(message)))
    assert "ValueError: start é" in raised
    assert_storable(raised, 16_384)


@given(ANY_TEXT, st.integers(0, 400))
def test_no_text_is_refused_and_none_is_too_long(message: str, bytes_max: int) -> None:
    for told in (error_text(message, bytes_max), message_text(message, bytes_max)):
        assert_storable(told, bytes_max)
    assert error_text(message * 10, 10_000) == message_text(message * 10, 10_000)


@given(st.binary(max_size=100))
def test_bytes_from_a_tool_become_a_message(line: bytes) -> None:
    assert_storable(message_text(line), 16_384)
    assert message_text(b"plain " + bytes(1)) == "plain \ufffd"
