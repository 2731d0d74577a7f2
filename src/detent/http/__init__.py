"""The HTTP API: the nouns and verbs of Python as paths."""
