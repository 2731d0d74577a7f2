"""Alerts: policies, their evaluation, and delivery to sinks."""
