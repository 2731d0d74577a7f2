"""The command line: `detent NOUN VERB`. Data on stdout, messages on stderr, exit codes that mean something."""
