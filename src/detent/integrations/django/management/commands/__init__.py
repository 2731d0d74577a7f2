"""The command `detent`."""
