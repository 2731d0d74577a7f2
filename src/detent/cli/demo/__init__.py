"""`detent demo`: two workers, a mixed load, one murder, and the books at the end."""
