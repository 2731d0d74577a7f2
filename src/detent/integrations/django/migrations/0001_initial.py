"""The line of the console in the admin. Detent's own tables are migrated by Detent, after every `manage.py migrate`."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """No table: `managed` is false."""

    initial = True
    operations = (
        migrations.CreateModel(
            name="Console",
            fields=[("id", models.BigAutoField(primary_key=True, serialize=False, verbose_name="ID"))],
            options={
                "verbose_name": "console",
                "verbose_name_plural": "console",
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
    )
