"""The command line: `detent NOUN VERB`. Data goes to stdout, messages go to stderr."""
