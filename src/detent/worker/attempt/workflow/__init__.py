"""An attempt at a workflow: what is on record, and the steps, waits and children that follow.

`history` decides without I/O. `operations` says what each call of the function does, as generators that yield what has
to be read, written or called. `context` drives them for plain functions, `aio_context` for async ones."""
