"""Workflows whose workers are killed, for tests and for a figure."""
