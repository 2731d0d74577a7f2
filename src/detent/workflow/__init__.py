"""Workflows: what is on record, and the steps, waits and children that follow.

`history` decides without I/O. `operations` and `child_operations` say what each call of a workflow's function does, as
generators that yield what has to be read, written or called. A worker drives them, and so does
a check that only looks how far the record reaches.
"""
