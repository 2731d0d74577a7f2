"""Repair: bring the projections of the record back to what the records say (R3)."""
