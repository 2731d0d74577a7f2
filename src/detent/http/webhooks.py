"""`POST /hooks/{name}`: takes the deliveries of incoming webhooks.

The order is: size, signature over the raw bytes, and only then the content. A sender that cannot sign learns nothing
else, and the server reads no more of its body than a webhook may have.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from detent.app.detent import Detent
from detent.errors import DatabaseError, DetentError, InvalidInput, WrongSignature
from detent.http.bodies import encode
from detent.http.problems import refuse
from detent.webhooks.incoming import AcceptedDelivery, IncomingWebhook

__all__ = ["HOOKS", "build_hook_endpoint", "log_webhooks"]

log = logging.getLogger("detent.server")

HOOKS = "/hooks/{name}"


def log_webhooks(app: Detent) -> None:
    """Read the secrets of all webhooks now, and log which webhooks are off."""
    for name, hook in app.incoming_webhooks.items():
        if not hook.is_on:
            log.warning("Webhook %s is off: it has no secret. POST %s answers 404.", name, hook.path)


def build_hook_endpoint(app: Detent) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint for all webhooks of the application."""
    hooks = app.incoming_webhooks

    async def take_delivery(request: Request) -> Response:
        hook = hooks.get(str(request.path_params["name"]))
        if hook is None or not await run_in_threadpool(lambda: hook.is_on):
            return refuse(404, "no webhook of this name takes deliveries here")
        try:
            hook.check_headers(request.headers)
            body = await _body(request, hook.size_max)
            if body is None:
                return refuse(413, f"the body has more than {hook.size_max} bytes")
            return await run_in_threadpool(_receive, hook, _headers(request), body)
        except WrongSignature:
            return refuse(401, "the signature is missing, wrong or too old")
        except ClientDisconnect:
            return refuse(400, "the body is incomplete")

    return take_delivery


def _receive(hook: IncomingWebhook, headers: dict[str, str], body: bytes) -> Response:
    try:
        accepted = hook.receive(headers, body)
    except (DatabaseError, WrongSignature):
        raise
    except InvalidInput as error:
        return refuse(400, str(error))
    except Exception as error:
        log.exception("Webhook %s failed; the delivery can be sent again.", hook.name)
        known = str(error) if isinstance(error, DetentError) else "its function raised an error"
        return refuse(500, f"webhook {hook.name!r} failed: {known}; the log of the server says more")
    return _answer(accepted, is_form=headers.get("content-type", "").startswith("application/x-www-form"))


def _answer(accepted: AcceptedDelivery, *, is_form: bool) -> Response:
    if accepted.reply is not None:
        return Response(encode(accepted.reply), 200, media_type="application/json")
    if is_form:
        # Slack shows what the answer to a form says, and takes no other status.
        return Response(status_code=200)
    body = {"delivery_id": accepted.delivery_id, "jobs": [str(one) for one in accepted.jobs], "runs": accepted.runs}
    return Response(encode(body), 202 if accepted.created else 200, media_type="application/json")


def _headers(request: Request) -> dict[str, str]:
    """Return the headers. Values of a header that is there twice are joined, so no signature is right."""
    found: dict[str, str] = {}
    for name, value in request.headers.items():
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


async def _body(request: Request, size_max: int) -> bytes | None:
    """Return the body; None as soon as it is known to be too large, and then the rest is not read."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > size_max:
        return None
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > size_max:
            return None
        parts.append(part)
    return b"".join(parts)
