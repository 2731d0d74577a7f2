"""A child process: claims jobs, runs their functions and writes how they ended."""
