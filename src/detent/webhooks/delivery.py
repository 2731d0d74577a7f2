"""A delivery from another system, after its signature was checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from detent.errors import InvalidInput
from detent.model import json_codec

__all__ = ["WebhookDelivery", "read_data"]

_FIELDS_MAX = 1000


@dataclass(frozen=True, slots=True)
class WebhookDelivery:
    """What a webhook's function gets: `data` is the parsed JSON, `event` names what has happened (`push`), and `id` is
    the same if the provider sends the delivery again. Names of `headers` are in lower case."""

    webhook: str
    id: str
    event: str
    data: Any
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)


def read_data(headers: Mapping[str, str], body: bytes, *, depth_max: int, forms: bool) -> Any:
    """Return the JSON value of a body; with `forms`, also the fields of a form as an object. `InvalidInput`."""
    kind = headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if forms and kind == "application/x-www-form-urlencoded":
        return _form(body, depth_max)
    if kind != "application/json":
        raise InvalidInput("Content-Type", repr(kind)[:80], "application/json")
    return json_codec.decode(_text(body), field="body", depth_max=depth_max)


def _form(body: bytes, depth_max: int) -> Any:
    """Return the fields of a form. Slack sends some requests as JSON in the field `payload`."""
    try:
        fields = dict(parse_qsl(_text(body), keep_blank_values=True, max_num_fields=_FIELDS_MAX))
    except ValueError as error:
        raise InvalidInput("body", str(error)[:80], "a form") from None
    if "payload" in fields:
        return json_codec.decode(fields["payload"], field="payload", depth_max=depth_max)
    return fields


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise InvalidInput("body", "bytes that are not UTF-8", "JSON in UTF-8") from None
