"""Hostile input through every door: values that no caller should send, and calls that send them."""
