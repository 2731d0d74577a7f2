"""Ops runs: builds, deploys and backups, and what triggers them."""
