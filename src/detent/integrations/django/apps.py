"""The Django application: `manage.py migrate` also brings the tables of Detent up to date."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

__all__ = ["DetentConfig"]


class DetentConfig(AppConfig):
    """Detent on the database that the setting `DETENT` names."""

    name = "detent.integrations.django"
    label = "detent"
    default_auto_field = "django.db.models.BigAutoField"
    verbose_name = "Detent"

    def ready(self) -> None:
        """Migrate Detent's tables after every `manage.py migrate`: a new release of Detent may bring new functions."""
        post_migrate.connect(_migrate, sender=self)


def _migrate(*, using: str, verbosity: int = 1, **_: Any) -> None:
    from detent.integrations.django.application import ALIAS, current

    if using != ALIAS:
        return
    with current() as app:
        for name in app.migrate():
            if verbosity >= 1:
                print(f"  Applied {name} of Detent")  # noqa: T201 as `manage.py migrate` prints its own
