"""The supervisor: starts child processes, watches them, renews their leases and cleans up after them."""
