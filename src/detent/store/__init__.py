"""The store: the only room with SQL or a driver. The rooms above do not know which database it is."""
