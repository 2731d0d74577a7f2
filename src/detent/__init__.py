"""Detent: a durable run engine for Python, on one SQLite file or on PostgreSQL."""

__version__ = "0.1.0"
