"""How each provider signs: known signatures are right, and everything else is wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from detent.errors import InvalidSetting
from detent.webhooks.shared_secret import SharedSecret
from detent.webhooks.signatures import VERIFIERS

SLACK_BODY = (
    b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V"
    b"&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text="
    b"&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    b"&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)
VECTORS: dict[str, tuple[bytes, dict[str, str], bytes, int]] = {
    # From the documentation of GitHub, of Slack and of Standard Webhooks. Those of Stripe, Shopify and GitLab were made
    # with `openssl dgst -sha256 -hmac`.
    "github": (
        b"It's a Secret to Everybody",
        {"x-hub-signature-256": "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
        b"Hello, World!",
        0,
    ),
    "gitlab": (b"mytoken", {"x-gitlab-token": "mytoken"}, b'{"object_kind": "push"}', 0),
    "stripe": (
        b"whsec_test_secret",
        {"stripe-signature": "t=1614265330,v1=d8ad0119c04884f963d66fde235b40b6fb9b013e987cbf5471d69f2574a46d8e,v0=old"},
        b'{"id": "evt_1", "object": "event"}',
        1614265330,
    ),
    "slack": (
        b"8f742231b10e8888abcd99yyyzzz85a5",
        {
            "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
            "x-slack-request-timestamp": "1531420618",
        },
        SLACK_BODY,
        1531420618,
    ),
    "shopify": (
        b"hush",
        {"x-shopify-hmac-sha256": "uGGfOb+XoECYuM+RY9Y3WocU+ijbVAGZNvXJ58KRFBA="},
        b'{"id": 820982911946154508}',
        0,
    ),
    "standard": (
        b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        b'{"test": 2432232314}',
        1614265330,
    ),
}
TIMED = {"stripe", "slack", "standard"}
SIGNED = sorted(set(VECTORS) - {"gitlab"})


def check(name: str, headers: dict[str, str], body: bytes, *secrets: bytes, later: float = 0) -> bool:
    verifier = VERIFIERS[name]
    signed_at = VECTORS[name][3]
    now = datetime.fromtimestamp(signed_at, UTC) + timedelta(seconds=later)
    keys = [verifier.decode(one) for one in secrets or (VECTORS[name][0],)]
    return verifier.check(keys, headers, body, now)


@pytest.mark.parametrize("name", VECTORS)
def test_a_known_signature_is_right(name: str) -> None:
    """O3, TW1"""
    _, headers, body, _ = VECTORS[name]
    assert check(name, headers, body)


@pytest.mark.parametrize("name", VECTORS)
def test_a_signature_that_we_make_is_right_too(name: str) -> None:
    secret, _, body, at = VECTORS[name]
    verifier = VERIFIERS[name]
    key, now = verifier.decode(secret), datetime.fromtimestamp(at, UTC)
    headers = verifier.sign(key, body, "d-1", "push", now)
    assert verifier.check([key], headers, body, now)
    assert verifier.proof in headers


@pytest.mark.parametrize("name", SIGNED)
@pytest.mark.parametrize("changed", [lambda body: body + b" ", lambda body: body[:-1], lambda body: b""])
def test_the_body_counts_to_the_last_byte(name: str, changed: Callable[[bytes], bytes]) -> None:
    """TW1: a body that was parsed and written again has another signature."""
    _, headers, body, _ = VECTORS[name]
    assert not check(name, headers, changed(body))


@pytest.mark.parametrize("name", VECTORS)
def test_the_secret_counts_and_there_may_be_several(name: str) -> None:
    """TW1: two secrets while one is replaced."""
    secret, headers, body, _ = VECTORS[name]
    other = b"whsec_c2VjcmV0IG9mIGFub3RoZXI="
    assert not check(name, headers, body, other)
    assert check(name, headers, body, other, secret)
    assert not check(name, headers, body, other, other)


WRONG: list[Callable[[str], str | None]] = [
    lambda right: None,
    lambda right: "",
    lambda right: right[:-1],
    lambda right: right[1:],
    lambda right: right + "0",
    lambda right: right.upper() if right.upper() != right else right.lower(),
    lambda right: right[:-3] + ("AAA" if not right.endswith("AAA") else "BBB"),
    lambda right: right + "\udcff",
    lambda right: right.replace("sha256=", "sha1=").replace("v1", "v0").replace("v0=", "v9=") + "x",
]


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("wrong", WRONG)
def test_any_other_signature_is_wrong(name: str, wrong: Callable[[str], str | None]) -> None:
    """TW1: none, an empty one, one digit less or off, another algorithm or version."""
    _, headers, body, _ = VECTORS[name]
    proof = VERIFIERS[name].proof
    given = wrong(headers[proof].removesuffix(",v0=old"))
    rest = {key: value for key, value in headers.items() if key != proof}
    assert not check(name, rest if given is None else rest | {proof: given}, body)


def test_sha_1_alone_does_not_count() -> None:
    """TW1: GitHub sends it beside SHA-256."""
    _, headers, body, _ = VECTORS["github"]
    assert not check("github", {"x-hub-signature": headers["x-hub-signature-256"]}, body)
    old = {"x-hub-signature-256": "sha1=" + "0" * 40}
    assert not check("github", old, body)


@pytest.mark.parametrize("name", sorted(TIMED))
@pytest.mark.parametrize(("later", "right"), [(299, True), (-299, True), (301, False), (-301, False), (10**9, False)])
def test_a_signature_holds_for_five_minutes(name: str, later: float, right: bool) -> None:
    """S-09, TW2: a delivery that is replayed outside the window is refused."""
    _, headers, body, _ = VECTORS[name]
    assert check(name, headers, body, later=later) is right


TIME_HEADER = {"slack": "x-slack-request-timestamp", "standard": "webhook-timestamp"}


@pytest.mark.parametrize("name", sorted(TIMED))
@pytest.mark.parametrize("time", [None, "", "0", "-1614265330", "1614265331", "1e9", "١٦١٤٢٦٥٣٣٠", "9" * 5000])
def test_the_time_is_signed_and_cannot_be_left_out(name: str, time: str | None) -> None:
    """S-09: a rewritten or dropped time is refused, also in the five minutes after it."""
    _, headers, body, at = VECTORS[name]
    if name == "stripe":
        written = "" if time is None else f"t={time},"
        changed = {"stripe-signature": headers["stripe-signature"].replace(f"t={at},", written)}
    elif time is None:
        changed = {key: value for key, value in headers.items() if key != TIME_HEADER[name]}
    else:
        changed = headers | {TIME_HEADER[name]: time}
    assert not check(name, changed, body, later=1)


def test_the_id_of_standard_webhooks_is_signed() -> None:
    """S-09: so a replay cannot pretend to be another delivery."""
    _, headers, body, _ = VECTORS["standard"]
    assert not check("standard", headers | {"webhook-id": "msg_other"}, body)
    moved = headers | {"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330", "webhook-timestamp": "1614265330"}
    assert not check("standard", moved, body)
    assert not check("standard", headers | {"webhook-id": ""}, body)


def test_several_signatures_may_be_sent_and_two_times_may_not() -> None:
    """Stripe and Standard Webhooks send one signature for each secret while a secret is rotated."""
    _, headers, body, at = VECTORS["standard"]
    right = headers["webhook-signature"]
    assert check("standard", headers | {"webhook-signature": f"v1,AAAA v1a,xyz {right}"}, body)
    _, headers, body, at = VECTORS["stripe"]
    right = headers["stripe-signature"]
    assert check("stripe", {"stripe-signature": right.replace("v1=", "v1=00,v1=")}, body)
    assert not check("stripe", {"stripe-signature": f"t={at},{right}"}, body)


@pytest.mark.parametrize("empty", ["", b"", [], ["right", ""], "env:", [b""], 7, None, [None]])
def test_an_empty_secret_is_refused(empty: Any) -> None:
    """TW1"""
    with pytest.raises((InvalidSetting, TypeError)):
        SharedSecret("hook", empty)


@pytest.mark.parametrize("wrong", ["whsec_", "whsec_no base64!", "whsec_%%"])
def test_a_secret_of_standard_webhooks_is_base64(wrong: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        SharedSecret("hook", wrong, VERIFIERS["standard"].decode)
    assert "whsec_no" not in str(refusal.value), "a secret is never shown"


def test_secrets_come_from_the_environment_or_a_function(monkeypatch: pytest.MonkeyPatch) -> None:
    """TW7: so that they do not stand in code."""
    monkeypatch.setenv("HOOK_SECRET", "from outside")
    monkeypatch.delenv("OTHER_SECRET", raising=False)
    assert SharedSecret("hook", "env:HOOK_SECRET").keys == (b"from outside",)
    assert SharedSecret("hook", ["env:OTHER_SECRET", lambda: b"from a function"]).keys == (b"from a function",)
    assert SharedSecret("hook", ["env:OTHER_SECRET", lambda: None]).keys == ()
    assert "secret" not in repr(SharedSecret("hook", "secret")).lower().replace("sharedsecret", "")
