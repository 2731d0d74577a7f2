"""The line of the admin that leads to the console, if `DETENT = {"console": URL}` says where that is."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponseRedirect

from detent.integrations.django.application import CONSOLE_URL
from detent.integrations.django.models import Console

__all__ = ["ConsoleAdmin"]


class ConsoleAdmin(admin.ModelAdmin):
    """Redirects to the console."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """No: there is one console."""
        return False

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponseRedirect:
        """Redirect to the console, which asks for a token of its own."""
        return HttpResponseRedirect(CONSOLE_URL)


if CONSOLE_URL is not None:
    admin.site.register(Console, ConsoleAdmin)
