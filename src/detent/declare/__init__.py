"""Declare: tasks, calls and settings. Nothing here is sent, nothing runs."""
