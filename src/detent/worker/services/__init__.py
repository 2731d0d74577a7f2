"""What workers do for the database besides running jobs."""
