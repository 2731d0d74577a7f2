"""Detent with other frameworks and libraries. Each folder or module needs its own, which nothing else in Detent imports."""
