"""A steady mixed load with faults for hours: whatever grows without end shows in the samples."""
