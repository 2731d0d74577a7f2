"""Commits in a database that is not Detent's: a marker there, keyed by job, in the user's own transaction."""
