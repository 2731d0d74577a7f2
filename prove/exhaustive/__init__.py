"""Every order of moves of two jobs: the store on SQLite beside the reference model, state by state."""
