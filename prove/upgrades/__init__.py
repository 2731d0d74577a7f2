"""Upgrades of a database while workers and clients of the older and the newer release use it."""
