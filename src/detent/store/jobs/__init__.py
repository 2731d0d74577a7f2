"""Jobs: entering, claiming, ending, moving, listing and counting them, and their upkeep."""
