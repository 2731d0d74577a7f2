"""One model without a table: it gives the console a line in the admin, and a permission to see it."""

from __future__ import annotations

from django.db import models

__all__ = ["Console"]


class Console(models.Model):
    """The console of Detent."""

    class Meta:
        managed = False
        default_permissions = ("view",)
        verbose_name = "console"
        verbose_name_plural = "console"
