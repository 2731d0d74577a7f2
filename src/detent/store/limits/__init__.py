"""Limits, and the lanes in which jobs wait under them."""
