"""Moves of a whole database into another one."""
