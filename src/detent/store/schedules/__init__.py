"""Schedules, and what programs declare in code."""
