"""Ops runs: builds, deploys and backups in the words of operations, and what triggers them."""
