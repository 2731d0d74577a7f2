"""What is enqueued by the clock: when its ticks are, and what becomes of each."""
