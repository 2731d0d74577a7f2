"""Verbs as statements: which function is called with what, and how its rows read. Pure: no connection, no clock."""
