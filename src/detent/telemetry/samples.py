"""The values of metrics, before they are written in a format."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from detent.telemetry.metric_table import METRICS, SECONDS_BOUNDS, Metric

__all__ = ["OTHER", "Histogram", "LabelCap", "Samples"]

OTHER = "other"
"""The value of a label for everything beyond its maximum number of values."""


class Histogram:
    """Counts of times by bucket, and their sum."""

    def __init__(self) -> None:
        self.counts = [0] * (len(SECONDS_BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, lower: float, count: int, seconds: float) -> None:
        """Add times that are all at least `lower` and in the same bucket."""
        self.counts[bisect_right(SECONDS_BOUNDS, lower)] += count
        self.seconds += seconds

    def add_all(self, other: Histogram) -> None:
        """Add the times of another histogram."""
        self.counts = [mine + its for mine, its in zip(self.counts, other.counts, strict=True)]
        self.seconds += other.seconds

    def cumulated(self) -> list[tuple[str, int]]:
        """Return the number of times up to each bound."""
        so_far, found = 0, []
        for bound, count in zip((*map(str, SECONDS_BOUNDS), "+Inf"), self.counts, strict=True):
            so_far += count
            found.append((bound, so_far))
        return found


class LabelCap:
    """Keeps the number of values of a label small: values beyond the first `most` become "other"."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: set[str] = set()

    def __call__(self, value: str) -> str:
        if value in self._known:
            return value
        if len(self._known) >= self._most:
            return OTHER
        self._known.add(value)
        return value


class Samples:
    """Values by metric and labels. Values of the same labels are added up."""

    def __init__(self) -> None:
        self._values: dict[str, dict[tuple[str, ...], float]] = {}
        self._histograms: dict[str, dict[tuple[str, ...], Histogram]] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add a value. A gauge that nothing was added to is left out, unless it has no labels."""
        assert len(labels) == len(METRICS[name].labels), name
        values = self._values.setdefault(name, {})
        values[labels] = values.get(labels, 0.0) + value

    def histogram(self, name: str, *labels: str) -> Histogram:
        """Return the histogram of these labels, to add to."""
        assert METRICS[name].kind == "histogram", name
        return self._histograms.setdefault(name, {}).setdefault(labels, Histogram())

    def add_all(self, other: Samples) -> None:
        """Add the values of others."""
        for name, values in other._values.items():
            for labels, value in values.items():
                self.add(name, value, *labels)
        for name, histograms in other._histograms.items():
            for labels, one in histograms.items():
                self.histogram(name, *labels).add_all(one)

    def values(self) -> Iterator[tuple[Metric, dict[tuple[str, ...], float]]]:
        """Yield gauges and counters, in the order of the table."""
        yield from ((metric, self._values[name]) for name, metric in METRICS.items() if name in self._values)

    def histograms(self) -> Iterator[tuple[Metric, dict[tuple[str, ...], Histogram]]]:
        """Yield histograms, in the order of the table."""
        yield from ((metric, self._histograms[name]) for name, metric in METRICS.items() if name in self._histograms)
