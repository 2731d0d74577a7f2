"""What tests of Detent, and of programs built on it, run against."""
