"""Batch runs, carried out by jobs: plan, preview, apply, revert, reconcile."""
