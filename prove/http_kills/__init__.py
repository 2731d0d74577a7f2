"""A server that is killed while programs use it."""
