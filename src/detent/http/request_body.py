"""The body of a request: JSON, and no longer than allowed."""

from __future__ import annotations

from starlette.requests import Request

from detent.errors import InvalidInput

__all__ = ["read_json"]


async def read_json(request: Request, size_max: int) -> bytes:
    """Return the body of a request, which must be JSON by its type. `InvalidInput`."""
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise InvalidInput("Content-Type", kind[:80], "application/json")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > size_max:
            raise InvalidInput("body", f"more than {size_max} bytes", f"at most {size_max} bytes")
        parts.append(part)
    return b"".join(parts)
