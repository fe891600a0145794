"""What each part counts and measures of itself, for Prometheus.

Counted where it happens; what can be read off a part's state is set when somebody asks. The names
stand in docs/reference/metrics.md. The core counts nothing.
"""

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30)
"""From a turn of an idle loop to what a person waits for with impatience."""

Metric = Counter | Gauge | Histogram


def _new(*metrics: Metric) -> CollectorRegistry:
    registry = CollectorRegistry()
    for each in metrics:
        registry.register(each)
    ProcessCollector(registry=registry)
    return registry


def _counter(name: str, what: str, *labels: str) -> Counter:
    return Counter(f"keyplane_{name}", what, labels, registry=None)


def _gauge(name: str, what: str, *labels: str) -> Gauge:
    return Gauge(f"keyplane_{name}", what, labels, registry=None)


def _histogram(name: str, what: str, *labels: str) -> Histogram:
    return Histogram(f"keyplane_{name}", what, labels, registry=None, buckets=_SECONDS)


bus_connects = _counter("bus_connects", "Connections made to the bus; all but one are again.")
entries = _gauge("entries", "Entries, by the state in which they are reported.", "state")

rollouts = _counter("rollouts", "Rollouts that ended, by outcome.", "outcome")
planning = _histogram("planning_seconds", "Time to read and plan a text.")
offers = _counter("offers", "Declarations that were numbered and signed.")
reports = _counter("reports", "Reports taken in.")
heard = _gauge("machine_heard_seconds", "Time since a machine was last heard.", "machine")
silent = _gauge(
    "machine_silent", "1 for a machine that missed three heartbeats, else 0.", "machine"
)
store_bytes = _gauge("store_bytes", "Bytes of the archives that the store has.")
store_archives = _gauge("store_archives", "Archives that the store has.")

occurrences = _counter(
    "occurrences", "What happened to units, by what it was and why.", "act", "cause"
)
effects = _counter("effects", "Effects that were carried out, by kind.", "kind")
effects_failed = _counter("effects_failed", "Effects that failed, by kind.", "kind")
effect_time = _histogram("effect_seconds", "Time of one effect, by kind.", "kind")
reconcile = _histogram("reconcile_seconds", "Time to take events in, decide, and save that.")

part_starts = _gauge("part_starts", "How often a part was started by this supervisor.", "child")
part_up = _gauge("part_up", "1 for a part that runs, else 0.", "child")

REGISTRIES = {
    "controller": _new(
        bus_connects,
        entries,
        rollouts,
        planning,
        offers,
        reports,
        heard,
        silent,
        store_bytes,
        store_archives,
    ),
    "agent": _new(
        bus_connects, entries, occurrences, effects, effects_failed, effect_time, reconcile
    ),
    "supervisor": _new(part_starts, part_up),
}
"""What each part tells of itself."""


def text(part: str) -> bytes:
    """All of one kind of part, in the text exposition format."""
    return prometheus_client.generate_latest(REGISTRIES[part])
