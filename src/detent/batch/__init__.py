"""Batch runs, built out of jobs: plan, preview, apply, revert and reconcile are tasks like any other."""
