"""The store: the only room with SQL or a driver. Above it nobody knows which database it is."""
