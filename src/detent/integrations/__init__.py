"""Detent with other frameworks and libraries. Each folder or module needs one, which nothing else in Detent imports."""
