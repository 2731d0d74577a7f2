"""Reading for people: why a job waits, how far a run is, figures of the last hours."""
