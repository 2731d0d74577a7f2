"""Detent inside frameworks. Each folder needs its framework, which nothing else in Detent imports."""
