"""Tokens of signals: what they say is signed, and nothing else is accepted."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.errors import WrongToken
from detent.model.signal_token import SignalToken, read_token

KEY, OTHER = b"k" * 32, b"o" * 32
TOKEN = SignalToken(17, 1, "decision", "token decision~")


def test_it_is_read_as_it_was_made() -> None:
    for token in (TOKEN, SignalToken(2**62, 9, "é" * 60, "a/b/token é#3~", True)):
        text = token.text(KEY)
        assert read_token(text, KEY) == token
        assert text == token.text(KEY)
        assert set(text) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def test_each_has_its_own_dedupe() -> None:
    others = [
        SignalToken(18, 1, "decision", "token decision~"),
        SignalToken(17, 2, "decision", "token decision~"),
        SignalToken(17, 1, "decision", "token decision#2~"),
    ]
    assert len({one.dedupe for one in (TOKEN, *others)}) == 4


def test_the_key_of_another_database_signs_nothing_here() -> None:
    with pytest.raises(WrongToken):
        read_token(TOKEN.text(OTHER), KEY)


@given(st.data())
def test_no_changed_token_is_accepted(data: st.DataObject) -> None:
    """A letter that is changed, added or left out, anywhere."""
    text = TOKEN.text(KEY)
    place = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.sampled_from("AZaz09-_=.é/ "))
    changed = data.draw(
        st.sampled_from([text[:place] + letter + text[place + 1 :], text[:place], text[:place] + letter + text[place:]])
    )
    if changed != text:
        with pytest.raises(WrongToken):
            read_token(changed, KEY)


@pytest.mark.parametrize(
    "text", ["", "dts_", "dts_AAAA", "x" * 10_000, "dts_" + "A" * 10_000, None, 17, TOKEN.text(KEY)[4:]]
)
def test_other_texts_are_refused(text: object) -> None:
    with pytest.raises(WrongToken, match="incomplete, or not one of this database"):
        read_token(text, KEY)


def test_a_signature_over_something_else_is_refused() -> None:
    """Signed with the right key, but not what a token says."""
    import hmac

    body = b"\xc0"
    signature = hmac.digest(KEY, b"detent signal token 1\0" + body, "sha256")[:20]
    text = "dts_" + base64.urlsafe_b64encode(body + signature).rstrip(b"=").decode()
    with pytest.raises(WrongToken):
        read_token(text, KEY)
