"""Workflows: recorded steps, waits, signals and children."""
