"""Detent, the floor and the peers at the same work, in turns: who takes part, what is done, what was to be reached."""
