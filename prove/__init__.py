"""Proofs of what Detent promises, as figures that anyone can repeat (`make prove`, docs/reliability.md)."""
