"""Outgoing webhooks: how far each target has been told."""
