"""Declarations: tasks, calls, batches, pipelines and settings. Nothing here is sent or run."""
