"""Batch runs in the store."""
