"""The metrics that are read off what machines say."""

from keyplane import metrics
from keyplane.parts.control_messages import Status


def measure(found: Status) -> None:
    """Set them as the fleet stands now."""
    metrics.entries.clear()
    for entry in found.entries:
        metrics.entries.labels(entry.state).inc()
    metrics.heard.clear()
    metrics.silent.clear()
    for each in found.machines:
        metrics.silent.labels(each.machine).set(each.silent)
        if each.heard_ms_ago is not None:
            metrics.heard.labels(each.machine).set(each.heard_ms_ago / 1000)
