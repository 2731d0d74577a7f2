"""Carry out: one attempt at a job, from its claim to its end."""
