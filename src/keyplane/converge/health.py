"""Whether a process is healthy, and when to look again.

An unhealthy process is told, and never restarted for it: what a probe sees may be the fault of
what the process depends on, and a restart would add an outage to it.
"""

from keyplane.converge.backoff import FAILED_AFTER
from keyplane.converge.frozen import replace
from keyplane.converge.processes import LONG_RUN_MS
from keyplane.converge.state import UnitLive, UnitMemory
from keyplane.model.declaration import DeclaredUnit, Health, UnitState

SETTLE_MS = 1_000
"""A process without a health check is healthy once it has run so long: a wrong configuration, a
port in use or a missing import end one within its first second."""

START_INTERVAL_MS = 250
"""Until it was healthy once, a process is probed this often within its start period: a rollout
waits for it, and it is soon over."""


def probed(live: UnitLive, health: Health, problem: str | None, *, now: int) -> UnitLive:
    """The state of a process after one more probe."""
    if problem is None:
        return replace(
            live,
            probe_ms=now + health.interval_ms,
            failures=0,
            was_healthy=True,
            unhealthy=False,
            problem=None,
        )
    if not live.was_healthy and now < live.since_ms + health.start_period_ms:
        interval = min(health.interval_ms, START_INTERVAL_MS)
        return replace(live, probe_ms=now + interval, failures=0, problem=problem)
    failures = live.failures + 1
    return replace(
        live,
        probe_ms=now + health.interval_ms,
        failures=failures,
        unhealthy=live.unhealthy or failures >= health.retries,
        problem=problem,
    )


def settled_at(live: UnitLive, memory: UnitMemory) -> int:
    """When a process may be called healthy: one that died over and over is not believed soon."""
    settle = LONG_RUN_MS if memory.deaths >= FAILED_AFTER or memory.unstartable else SETTLE_MS
    return live.since_ms + settle


def running_state(
    declared: DeclaredUnit, live: UnitLive, memory: UnitMemory, *, now: int
) -> UnitState:
    """Of a process that runs under the digest that is declared."""
    if declared.run_once:
        return UnitState.STARTING
    if declared.health is not None:
        if live.unhealthy:
            return UnitState.UNHEALTHY
        if not live.was_healthy:
            return UnitState.STARTING
        proven = memory.deaths < FAILED_AFTER or now >= settled_at(live, memory)
        return UnitState.HEALTHY if proven else UnitState.STARTING
    return UnitState.HEALTHY if now >= settled_at(live, memory) else UnitState.STARTING
