"""Processes that are killed at their statements: what they do, and what must hold after others have gone on."""
