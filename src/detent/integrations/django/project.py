"""The application with all its tasks, for workers and tools: sets Django up, and imports the module `tasks` of every
installed app."""

from __future__ import annotations

import django
from django.apps import apps
from django.utils.module_loading import autodiscover_modules

if not apps.ready:
    django.setup()
autodiscover_modules("tasks")

from detent.integrations.django.application import app  # noqa: E402 after Django is set up

__all__ = ["app"]
