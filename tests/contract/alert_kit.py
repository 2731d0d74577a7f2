"""Policies and routes as most tests of alerts need them."""

from __future__ import annotations

from typing import Any

from detent.model.alert_records import Policy, Route

__all__ = ["ALL", "policy"]

ALL = Route("hook", ("info", "warning", "critical"))


def policy(**overrides: Any) -> Policy:
    """More than fifty dead letters of all together, and whatever is asked for."""
    fields: dict[str, Any] = {
        "name": "dead_letters",
        "measure": "dead_letters",
        "each": "whole",
        "severity": "warning",
        "threshold": 50.0,
        "window_seconds": 0.0,
        "count_min": 0,
        "calm_seconds": 300.0,
        "message": "{value} jobs are quarantined",
    }
    return Policy(**fields | overrides)
