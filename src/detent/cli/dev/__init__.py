"""The parts of `detent dev`."""
