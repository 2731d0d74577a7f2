"""Connections to PostgreSQL: the pool, sessions over whoever's connection, and failures in Detent's own words."""
