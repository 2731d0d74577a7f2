"""Read: jobs, their lines, their history, and why they are where they are. Nothing here changes anything."""
