"""Do: enqueue, cancel, retry, move; from Python, sync or async, on Detent's connection or on the caller's."""
