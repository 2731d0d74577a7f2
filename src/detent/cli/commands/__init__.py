"""One module a noun; each has a `command`, and is found by its name."""
