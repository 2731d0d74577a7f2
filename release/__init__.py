"""What makes a release out of the repository: `make dist`."""
