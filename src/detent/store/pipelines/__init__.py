"""Pipeline runs in the store."""
