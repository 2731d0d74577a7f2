"""The record on PostgreSQL: a verb is one versioned SQL function, the same that bash calls."""
