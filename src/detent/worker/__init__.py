"""The worker: a supervisor process, its child processes, the attempts they make, and the services they run."""
