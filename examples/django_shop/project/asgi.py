"""The shop, with the console and the API of Detent under /detent: `uvicorn project.asgi:application`."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
shop = get_asgi_application()

from detent.integrations.django.asgi import with_console  # noqa: E402 after Django is set up

application = with_console(shop)
