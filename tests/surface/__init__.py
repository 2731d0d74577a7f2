"""The doors of Detent, compared with each other."""
