"""Migrations of Django."""
