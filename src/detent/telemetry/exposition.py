"""Metrics in the text format of Prometheus, or that of OpenMetrics if the reader asks for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector, CollectorRegistry

from detent.telemetry.samples import Samples

__all__ = ["encode_metrics"]


class _Samples(Collector):
    def __init__(self, read: Callable[[], Samples]) -> None:
        self._read = read

    def collect(self) -> Iterator[Family]:
        samples = self._read()
        for metric, values in samples.values():
            family = (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(
                metric.name, metric.help, labels=metric.labels
            )
            for labels, value in sorted(values.items()):
                family.add_metric(labels, value)
            yield family
        for metric, histograms in samples.histograms():
            times = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
            for labels, one in sorted(histograms.items()):
                times.add_metric(labels, one.cumulated(), one.seconds)
            yield times


def encode_metrics(accept: str, read: Callable[[], Samples]) -> tuple[bytes, str]:
    """Return the metrics and their content type, in the format that the header `Accept` asks for."""
    encode, content_type = choose_encoder(accept)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Samples(read))
    return encode(registry), content_type
