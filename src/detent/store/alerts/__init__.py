"""Alerts, their policies, and their delivery."""
