"""One attempt at a job: its context, its commit boundary, its time limits and its endings."""
