"""Connections to PostgreSQL: the pool, sessions on a connection, and the translation of errors."""
