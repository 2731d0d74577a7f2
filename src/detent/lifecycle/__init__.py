"""Lifecycles as data: their definition, checks, the library of Detent's own, and diagrams."""
