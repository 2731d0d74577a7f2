"""Testing: a pytest plugin, throw-away databases, and clocks that tests advance."""
