"""Pipeline runs, carried out by jobs: plan, pages, consolidation."""
