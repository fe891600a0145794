"""What `keyplane up` waits for once its apply is through."""

from itertools import accumulate, pairwise

from keyplane.cli import coming
from keyplane.converge import backoff
from keyplane.parts import control_messages as messages


def entry(state: str, *, current: bool = True, machine: str = "left") -> messages.EntryStatus:
    units = {"run": messages.UnitStatus(state=state)}
    return messages.EntryStatus(
        entry=f"web:main@{machine}",
        machine=machine,
        state=state,
        current=current,
        units=units,
        listens={},
    )


def machine(*, silent: bool = False, anew: bool = False) -> messages.MachineStatus:
    return messages.MachineStatus(
        machine="left", heard_ms_ago=1, silent=silent, anew=anew, offered="1.1", accepted="1.1"
    )


def on_the_way(
    entry: messages.EntryStatus, machine: messages.MachineStatus, *, failed: bool = False
) -> bool:
    status = messages.Status(
        fleet="x",
        generation="y",
        revision=1,
        entries=[entry],
        machines=[machine],
        rollout=None,
        diagnostics=[],
    )
    return bool(list(coming.on_the_way(status, failed=failed)))


def test_what_is_starting_is_on_its_way() -> None:
    assert on_the_way(entry("applying"), machine())
    assert on_the_way(entry("applied"), machine())
    assert on_the_way(entry("unreported", current=False), machine())


def test_what_was_healthy_before_its_agent_started_is_on_its_way() -> None:
    assert on_the_way(entry("healthy"), machine(anew=True))


def test_what_is_healthy_failed_or_waits_for_somebody_is_not() -> None:
    for state in ("healthy", "failed", "stopped", "waiting", "running-stale"):
        assert not on_the_way(entry(state), machine())
    assert not on_the_way(entry("healthy", current=False), machine())


def test_what_failed_is_waited_for_while_it_is_tried_again() -> None:
    assert on_the_way(entry("failed"), machine(), failed=True)


def test_what_failed_for_however_long_is_tried_again_meanwhile() -> None:
    """Also where an apply took so long that the tries are far apart by its end."""
    tries = list(accumulate(backoff.delay_ms(failures) for failures in range(1, 30)))
    for before, after in pairwise(tries):
        assert coming.tried_again_s(before / 1000) > (after - before) / 1000
    assert coming.tried_again_s(0.0) == coming.TRIED_AGAIN_S


def test_a_silent_machine_is_not_waited_for() -> None:
    assert not on_the_way(entry("applying"), machine(silent=True))
    assert not on_the_way(entry("healthy"), machine(silent=True, anew=True))
