"""Deterministic simulation: real workers, services and clients on a database in memory, under a scheduler with a seed.

Everything runs on one thread. What is a thread in a real worker is an *actor* here, and the scheduler decides at every
call of the database who goes on, how much time passes, and what fails. The same seed gives the same schedule. Only what
touches the operating system is replaced: threads, pipes, processes, the clock. The store, the claimer, the runner, the
flusher, the supervisor, its services and the contexts of tasks and workflows are the real ones.
"""
