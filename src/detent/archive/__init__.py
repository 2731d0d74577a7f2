"""Files of finished jobs: written before retention deletes the jobs, and searched later (J16)."""
