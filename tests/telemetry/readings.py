"""Metrics as a program that scrapes them reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from detent.telemetry.exposition import encode_metrics
from detent.telemetry.metric_table import METRICS
from detent.telemetry.shared_metrics import SharedMetrics

__all__ = ["Reading", "parse", "scrape"]

Reading = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def parse(text: str) -> Reading:
    """Values by name and labels. Every metric must be declared, with these labels and this kind."""
    found: Reading = {}
    for family in text_string_to_metric_families(text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        declared = METRICS[name]
        assert (family.type, family.documentation) == (declared.kind, declared.help)
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(declared.labels), sample
            found[sample.name, tuple(sorted(sample.labels.items()))] = sample.value
    return found


def scrape(shared: SharedMetrics) -> Reading:
    """What a scrape shows."""
    return parse(encode_metrics("", shared.read)[0].decode())
