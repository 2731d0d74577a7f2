"""Alerts: when something is wrong (policies), whether it is (the judge), and who hears of it (sinks, courier)."""
