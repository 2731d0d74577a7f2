"""Commits whose request or answer is lost, and what must hold after others have gone on."""
