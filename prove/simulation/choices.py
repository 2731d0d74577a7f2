"""Every decision of a schedule, drawn from a seed or repeated from a list."""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["SCALE", "Choices"]

SCALE = 1000
"""Each choice is a number below this. Zero is always the plain one: go on, nothing fails, no time passes."""


class Choices:
    """A stream of numbers from a seed; or the numbers of `given`, and zeros after them. `drawn` is what was used: given
    again, it repeats the schedule."""

    def __init__(self, seed: int, given: Sequence[int] | None = None) -> None:
        self._random = random.Random(seed)
        self._given = given
        self.seed = seed
        self.drawn: list[int] = []

    def draw(self) -> int:
        """Return the next number."""
        if self._given is None:
            value = int(self._random.random() * SCALE)
        else:
            value = self._given[len(self.drawn)] if len(self.drawn) < len(self._given) else 0
        self.drawn.append(value)
        return value

    def below(self, limit: int) -> int:
        """Return a number below `limit`, each as likely as the others."""
        return self.draw() * limit // SCALE

    def happens(self, share: float) -> bool:
        """Return whether something happens that happens this often."""
        return self.draw() >= SCALE * (1 - share)
