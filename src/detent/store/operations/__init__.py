"""Operations: one action on all jobs that fit a filter."""
