"""The inventory in memory and the one in SQL answer alike, whatever is committed."""

import asyncio
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.adapters.sql.inventory import SqlInventory
from keyplane.ports.inventory import Inventory, StoredPlan, StoredRollout
from keyplane.testing.inventory import MemoryInventory
from tests.contract.inventory.values import digest, stored

plans = st.integers(0, 6).map(
    lambda n: stored(
        f"g{n}",
        {f"e{bit}": str(n % 3) for bit in range(3) if n >> bit & 1},
        contents={digest(f"{n % 2}"): b"%d" % (n % 2)},
    )
)


async def answers(
    inventory: Inventory, steps: list[tuple[StoredPlan, StoredPlan]]
) -> list[StoredPlan | StoredRollout | None]:
    said: list[StoredPlan | StoredRollout | None] = []
    parent = None
    for n, (plan, base) in enumerate(steps):
        said.append(
            await inventory.commit(
                plan, parent=parent, rollout=b"%d" % n, base=base.entries, who="ada", at_ms=n
            )
        )
        parent = plan.plan.generation
        said.append(await inventory.target())
        said.extend([await inventory.plan(digest(f"g{each}")) for each in range(7)])
        said.extend([await inventory.rollout(number) for number in (None, n, n + 1, n + 2)])
    await inventory.close()
    return said


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.tuples(plans, plans), max_size=8))
def test_memory_and_sqlite_answer_alike(steps: list[tuple[StoredPlan, StoredPlan]]) -> None:
    """Plans that come back, bases of any kind, few generations kept."""

    async def both() -> None:
        with tempfile.TemporaryDirectory() as directory:
            sql = await SqlInventory.open(f"sqlite:///{Path(directory)}/inventory.db")
            assert await answers(sql, steps) == await answers(MemoryInventory(), steps)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("keyplane.ports.ordering.GENERATIONS_KEPT", 3)
        patch.setattr("keyplane.ports.ordering.ROLLOUTS_KEPT", 4)
        asyncio.run(both())
