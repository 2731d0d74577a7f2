"""Metrics and traces: what other programs measure Detent by."""
