"""Ops runs in the store."""
