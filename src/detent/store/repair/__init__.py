"""Repair (R3): bring rows back to what the records say.

`plan` decides what to do about every broken invariant, `job_projection` makes a job out of its records, `apply` carries
the plan out, and `database` has the statements.
"""
