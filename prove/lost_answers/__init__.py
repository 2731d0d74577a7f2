"""Commits whose request or answer is lost, and what must hold whoever goes on."""
