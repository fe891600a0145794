"""An inventory that was lost knows neither what runs nor what machines are."""

from keyplane.parts.control_client import RefusedError
from keyplane.parts.control_messages import Problem
from keyplane.parts.knowing import Knowing
from keyplane.parts.planning import Planned
from keyplane.ports.inventory import Inventory
from keyplane.rollout import withheld


async def check(inventory: Inventory, facts: Knowing, planned: Planned) -> None:
    """Refuse a first target that would take away what runs, for facts that are not said yet."""
    if not planned.lacks_facts:
        return
    reports, known = await inventory.reports(), await facts.known()
    running = {entry for each in reports.values() for entry in each.report.entries}
    found = withheld.withheld(planned.plan, ())
    waiting = sorted(running & withheld.with_consumers(found, planned.plan.edges).keys())
    unsaid = sorted(
        machine
        for machine, each in reports.items()
        if each.report.entries and (machine not in known or known[machine].moved)
    )
    if waiting or unsaid:
        raise RefusedError(
            Problem(
                code="facts-missing",
                message="machines run something of which this inventory knows nothing, and "
                f"{', '.join(unsaid or waiting)} would lose it for a fact that is not said yet: "
                "apply again in a moment",
            )
        )
