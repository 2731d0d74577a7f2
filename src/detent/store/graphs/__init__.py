"""Graphs: jobs that start when others have ended."""
