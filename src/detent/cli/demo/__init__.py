"""The parts of `detent demo`: an application, its workload, a scenario with two workers, and the display."""
