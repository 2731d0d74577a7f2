"""Schedules: when their ticks are, and the jobs they enqueue."""
