"""Tokens of the HTTP API."""
