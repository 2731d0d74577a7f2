"""The table of orders."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """Create it."""

    initial = True
    operations = (
        migrations.CreateModel(
            name="Order",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("item", models.CharField(max_length=100)),
                ("state", models.CharField(default="placed", max_length=20)),
            ],
        ),
    )
