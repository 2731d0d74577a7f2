"""The dashboard, the alert rules and the scaler in docs/monitoring: they name what exists."""

from __future__ import annotations

import json
import re

import pytest

from detent.alerts.policies import DEFAULTS
from detent.telemetry.metric_table import METRICS, PROCESS_METRICS, SHARED_METRICS
from tests.processes.worker_processes import ROOT

FOLDER = ROOT / "docs" / "monitoring"
RULES = (FOLDER / "prometheus-rules.yml").read_text()
DASHBOARD = (FOLDER / "grafana-dashboard.json").read_text()
RULE = re.compile(
    r"- alert: (?P<name>\w+)\n +expr: (?:>-\n)?(?P<expr>.*?)\n +(?:for|labels): .*?severity: (?P<severity>\w+)", re.S
)


def unknown(text: str) -> set[str]:
    """Metrics that are named and not declared."""
    named = set(re.findall(r"\bdetent_\w+", text)) - {"detent_viewer"}
    series = {name.removesuffix(end) if end else name for name in named for end in _ends(name)}
    return series - set(METRICS)


def _ends(name: str) -> list[str]:
    ends = [end for end in ("_bucket", "_sum", "_count") if name.endswith(end)]
    return ends or [""]


@pytest.mark.parametrize("file", sorted(path.name for path in FOLDER.iterdir()))
def test_every_metric_named_exists(file: str) -> None:
    assert unknown((FOLDER / file).read_text()) == set()


def test_a_planted_name_is_found() -> None:
    assert unknown("rate(detent_made_up_total[5m])") == {"detent_made_up_total"}


def test_every_label_named_exists() -> None:
    """A selector or a grouping by a label that no metric has shows nothing."""
    labels = {label for metric in METRICS.values() for label in metric.labels} | {"le"}
    for text in (RULES, "\n".join(target["expr"] for panel in panels() for target in panel["targets"])):
        grouped = {name.strip() for found in re.findall(r"\b(?:by|on) \(([^)]*)\)", text) for name in found.split(",")}
        selected = set(re.findall(r"[{,](\w+)=~?\"", text))
        assert grouped | selected <= labels


def panels() -> list[dict[str, list[dict[str, str]]]]:
    found: list[dict[str, list[dict[str, str]]]] = json.loads(DASHBOARD)["panels"]
    return found


def test_the_dashboard_shows_every_metric_of_m1() -> None:
    """M1: what is measured is shown. Times appear as buckets."""
    shown = {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"detent_\w+", DASHBOARD)}
    left_out = {"detent_queue_paused", "detent_breakers_open", "detent_database_up", "detent_process_outcomes_total"}
    assert shown == {metric.name for metric in (*SHARED_METRICS, *PROCESS_METRICS)} - left_out


@pytest.mark.parametrize(
    ("rule", "policy"),
    [
        ("DetentSuccessRateLow", "success_rate_low"),
        ("DetentSuccessRateCritical", "success_rate_critical"),
        ("DetentDeadLettersMany", "dead_letters_many"),
        ("DetentDeadLettersCritical", "dead_letters_critical"),
        ("DetentThrottledBurst", "throttled_burst"),
        ("DetentBreakerOpen", "breaker_open"),
        ("DetentQueueStalled", "queue_stalled"),
        ("DetentInvariantViolated", "invariant_violated"),
    ],
)
def test_rules_have_the_thresholds_of_the_policies(rule: str, policy: str) -> None:
    rules = {found["name"]: found for found in RULE.finditer(RULES)}
    default = DEFAULTS[policy]
    assert rules[rule]["severity"] == default.severity
    numbers = [float(number) for number in re.findall(r"[<>]=? ([\d.]+)", rules[rule]["expr"])]
    assert numbers[0] == (default.threshold or 0)
    if default.count_min:
        assert numbers[1] == default.count_min
    if default.window_seconds:
        assert f"[{default.window_seconds / 60:g}m]" in rules[rule]["expr"]
