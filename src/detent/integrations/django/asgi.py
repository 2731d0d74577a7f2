"""The console and the API of Detent beside a Django project, in one ASGI application."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from detent.integrations.django.project import app

__all__ = ["with_console"]


def with_console(project: Any, prefix: str = "/detent", **options: Any) -> Any:
    """Return an ASGI application that serves the console and the API under a prefix, and the project elsewhere.

    `project` is what `get_asgi_application()` returns. The names in ALLOWED_HOSTS are allowed here too. `options` are
    those of `build_api`. `ImportError` if FastAPI is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Mount

        from detent.http.api import build_api
    except ModuleNotFoundError as error:
        raise ImportError(
            f"with_console needs {error.name}, which is not installed. Run `pip install 'detent[django,server]'`."
        ) from error
    named = [host for host in settings.ALLOWED_HOSTS if not host.startswith(("*", "."))]
    return Starlette(routes=[Mount(prefix, build_api(app, **{"hosts": named, **options})), Mount("/", project)])
