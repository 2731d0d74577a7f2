"""Values that callers should not send: odd text, numbers, times, JSON, cron expressions, zones, ids and cursors.

A value is drawn from a list of known trouble, or made of such values. All is decided by one random number generator.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any, TypeVar

__all__ = ["Values"]

T = TypeVar("T")

TEXTS: tuple[str, ...] = (
    *("", " ", "\t", "\n", "\r\n", "\0", "a\0b", "\x7f", "\x1b[31mred"),
    *("\x1b]0;title\x07", "\x9b31m", "\ufeff", "\uffff"),
    *("\ud800", "a\udfffb", "\udce9", "\U0010ffff", "\u202eevil", "\u2066x\u2069", "\u200b", "\u2028", "a\u0300" * 50),
    *("\u0130\u0131", "\u212a", "\ufb03", "\u00df", "\U0001f600" * 130),
    *("\u00fc" * 257, "x" * 512, "x" * 513, "k" * 10_000),
    *("'", '"', "''", "';--", "' OR '1'='1", "'; DROP TABLE detent_job; --"),
    *("$$; SELECT 1; $$", "%s %(a)s {0} {a}", ":id ?1 $1"),
    *("../../etc/passwd", "/etc/passwd", "..", ".", "a/b/../c"),
    *("a//b", "%2e%2e%2f", "C:\\x", "file:///etc/passwd", "~root"),
    *("<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'),
    *("javascript:alert(1)", "{{7*7}}", "${7*7}", "</script>"),
    *("$(id)", "`id`", "; id", "| id", "--help", "-", "--"),
    *("--upload-pack=x", "@file", "\\", "*", "?", "[", "(a+)+$" + "a" * 40),
    *("null", "None", "true", "NaN", "Infinity", "undefined", "[]"),
    *("{}", "os:system", "__class__", "__proto__", "detent", "detent."),
)  # fmt: skip
NUMBER_TEXTS = (
    *(
        "0",
        "-0",
        "-1",
        "+1",
        "01",
        "1_0",
        " 1",
        "1 ",
        "1\n",
        "1.0",
        "1e3",
        "0x10",
        "\uff11",
        "\u0661",
        "\u00b2",
        "9" * 19,
    ),
    *(str(2**31), str(2**63 - 1), str(2**63), str(-(2**63)), str(2**64), "9" * 5000, "1" * 18, "NaN", "inf", "1e400"),
)
NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2, 10_000, 10_001, 2**15, -(2**15) - 1, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64),
    *(10**30, 10**400, True, False, -0.0, 0.1, 1.5, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf),
)
TIME_TEXTS = (
    *("2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01"),
    *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    *("2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T24:00:00Z"),
    *("2026-06-30T23:59:60Z", "10000-01-01T00:00:00Z"),
    *("-0001-01-01T00:00:00Z", "2026-01-01T00:00:00+99:99"),
    *("2026-01-01T00:00:00.123456789Z", "now", "yesterday", "2h", "-2h"),
    *("1767225600", "1e20", "99999999999d", "inf", "nan", "2026-W01-1", "20260101T000000Z"),
)  # fmt: skip
TIMES: tuple[Any, ...] = (
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 1, 1),  # noqa: DTZ001 - a naive time is what is sent
    datetime.max.replace(tzinfo=UTC),
    datetime.min.replace(tzinfo=UTC),
    datetime.max.replace(tzinfo=timezone(-timedelta(hours=23))),
    datetime.min.replace(tzinfo=timezone(timedelta(hours=23))),
    datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=timezone(timedelta(hours=2, minutes=1, seconds=7))),
    date(2026, 1, 1),
    timedelta(days=1),
)
CRONS = (
    *("* * * * *", "*/5 * * * *", "0 2 * * MON-FRI", "60 * * * *"),
    *("* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *"),
    *("* * * * 8", "*/0 * * * *", "*/-1 * * * *", "1-0 * * * *"),
    *("0 0 30 2 *", "0 0 31 4,6,9,11 *", "@daily", "@every 1s"),
    *("* * * *", "* * * * * *", "1,,2 * * * *", ", * * * *"),
    *("1-2-3 * * * *", "*/9999999999 * * * *", "9" * 400 + " * * * *"),
    *("\uff11 * * * *", "L * * * *", "0#1 * * * *", "? * * * *"),
    *("*\t*\n* * *", "0 0 * JAN SUN#6", "1," * 5_000 + "1 * * * *"),
    *("", " ", "a b c d e", "0 0 1 1 * ; id", "-1 * * * *", "1-59/0 * * * *", "59-1 * * * *", "1/2/3 * * * *"),
)  # fmt: skip
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "", " ", ".", ".."),
    *("../../etc/passwd", "/etc/localtime", "/usr/share/zoneinfo/UTC"),
    *("europe/berlin", "EUROPE/BERLIN", "Europe/", "Europe", "Mars/Olympus"),
    *("GMT+25", "UTC+1", "localtime", "posixrules", "Factory"),
    *("tzdata.zi", "leapseconds", "zone.tab", "right/UTC", "posix/UTC"),
    *("UTC\0", "UTC\n", "Europe\\Berlin", "\ud800", "x" * 5_000),
    *("Europe/Berlin/../London", "__init__.py", "zoneinfo", "EST5EDT", "\u0130stanbul", "Pacific/Apia", "+01:00"),
)  # fmt: skip
CURSORS = (
    "",
    "0",
    "-1",
    "zzz",
    "1.2",
    "1:2:3",
    "AAAA",
    "eyJhIjoxfQ==",
    "null",
    "[]",
    "a,b",
    str(2**63),
    "\x00",
    "%00",
    "1767225600000000.5",
)
_DEPTHS = (1, 8, 62, 63, 64, 65, 66, 500, 20_000)
_SIZES = (1, 512, 513, 65_536, 1 << 20)
_OF_NO_USE: tuple[Any, ...] = (
    *(None, b"", b"\xff\xfe", [], [[]], {}, {"a": 1}, (), set(), object, Decimal("NaN"), Decimal(1), 1j, range(3), ...),
    *(["a", None], [1, "a"], {"": ""}, {1: 2}, {"\0": 1}),
)


class Values:
    """Draws values. `random` decides which."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def text(self) -> str:
        """Draw a text: one of the known ones, two of them together, random characters, or a long one."""
        match self.random.randrange(8):
            case 0:
                return self.one(TEXTS) + self.one(TEXTS)
            case 1:
                return "".join(chr(self._character()) for _ in range(self.random.randrange(1, 12)))
            case 2:
                return self.one((*NUMBER_TEXTS, *TIME_TEXTS, *CURSORS, *ZONES))
            case _:
                return self.one(TEXTS)

    def _character(self) -> int:
        return self.random.choice(
            (self.random.randrange(0x20), self.random.randrange(0x80), self.random.randrange(0x110000))
        )

    def number(self) -> Any:
        """Draw a number of Python."""
        if self.random.random() < 0.3:
            return self.random.choice((-1, 1)) * self.random.randrange(1 << self.random.randrange(1, 70))
        return self.one(NUMBERS)

    def number_text(self) -> str:
        """Draw a text that is a number, or nearly one."""
        return self.one(NUMBER_TEXTS) if self.random.random() < 0.7 else str(self.number())[:5_000]

    def time(self) -> Any:
        """Draw a time of Python."""
        return self.one(TIMES)

    def time_text(self) -> str:
        """Draw a text that is a time or an age, or nearly one."""
        return self.one(TIME_TEXTS)

    def cron(self) -> str:
        """Draw a cron expression: a known one, or five drawn fields."""
        if self.random.random() < 0.5:
            return self.one(CRONS)
        atoms = (
            "*",
            "0",
            "1",
            "59",
            "60",
            "7",
            "1-5",
            "5-1",
            "*/2",
            "*/0",
            "1,2",
            "MON",
            "JAN",
            "L",
            "-",
            "/",
            "1/",
            "a",
            "\u0661",
        )
        return " ".join(self.one(atoms) for _ in range(self.random.choice((4, 5, 5, 5, 5, 6))))

    def zone(self) -> str:
        """Draw the name of a time zone, or nearly one."""
        return self.one(ZONES)

    def cursor(self) -> str:
        """Draw the place of a page."""
        return self.one(CURSORS) if self.random.random() < 0.6 else self.text()

    def anything(self) -> Any:
        """Draw a value of any type."""
        draw: Callable[[], Any] = self.one((self.text, self.text, self.number, self.time, self.nested, self._useless))
        return draw()

    def _useless(self) -> Any:
        return self.one(_OF_NO_USE)

    def nested(self) -> Any:
        """Draw a JSON value that is deep, wide or has odd names."""
        match self.random.randrange(5):
            case 0:
                value: Any = self.number()
                for _ in range(self.one(_DEPTHS[:-1])):
                    value = [value] if self.random.random() < 0.5 else {"a": value}
                return value
            case 1:
                return {self.text(): self.number(), self.text(): self.text()}
            case 2:
                return [self.text(), self.number(), None]
            case 3:
                return "x" * self.one(_SIZES)
            case _:
                return self.number()

    def json_text(self) -> str:
        """Draw a text that is JSON, or nearly: odd numbers, escapes and names; deep, cut off or repeated."""
        depth = self.one(_DEPTHS)
        known: tuple[Callable[[], str], ...] = (
            lambda: "[" * depth + "]" * depth,
            lambda: '{"a":' * depth + "1" + "}" * depth,
            lambda: "[" * depth,
            lambda: '{"a":1,"a":2}',
            lambda: '{"a":1,"b":2,}',
            lambda: '{"a":' + self.number_text() + ',"b":2}',
            lambda: '{"a":1e999,"b":' + "9" * 400 + "}",
            lambda: r'{"a":"\ud800","b":"\u0000"}',
            lambda: '{"a":NaN,"b":-Infinity}',
            lambda: '{"' + self.text() + '":1}',
            lambda: '{"a":1,"b":2}' + self.text(),
            lambda: "\ufeff{}",
            lambda: json.dumps(self.text()),
            lambda: json.dumps({"a": self.text(), "b": self.text()}),
            self.text,
        )
        return self.one(known)()

    def octets(self) -> bytes:
        """Draw bytes that are JSON in UTF-8, or nearly."""
        text = self.json_text().encode("utf-8", self.one(("surrogatepass", "replace")))
        match self.random.randrange(6):
            case 0:
                return bytes(self.random.randrange(256) for _ in range(self.random.randrange(1, 60)))
            case 1:
                place = self.random.randrange(len(text) + 1)
                return text[:place] + self.random.randbytes(2) + text[place:]
            case 2:
                return text[: self.random.randrange(len(text) + 1)]
            case 3:
                return text.decode("utf-8", "replace").encode(self.one(("utf-16", "utf-32", "utf-8-sig")))
            case _:
                return text

    def one(self, choices: Sequence[T]) -> T:
        """Draw one of these."""
        return choices[self.random.randrange(len(choices))]
