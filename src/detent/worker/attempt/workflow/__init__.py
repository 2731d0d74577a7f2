"""An attempt at a workflow: its context, plain or async, drives the operations of `detent.workflow`."""
