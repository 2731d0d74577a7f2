"""A shop with an HTTP API that limits, fails and lies; and a rule that reprices it all the same."""
