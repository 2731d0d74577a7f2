"""What knows sqlite3, files, locks and threads; the verbs above it know only statements."""
