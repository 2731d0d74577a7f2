"""Pipeline runs, built out of jobs: plan, pages, consolidation."""
