"""The tables of the shop."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """An order of one item."""

    item = models.CharField(max_length=100)
    state = models.CharField(max_length=20, default="placed")
