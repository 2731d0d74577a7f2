"""Commits in a database that is not Detent's: a marker row there, keyed by job, in the user's own transaction."""
