"""Detent with other frameworks and libraries. Each folder or module needs its own; nothing else in Detent imports it."""
