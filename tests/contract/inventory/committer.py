"""A process that commits one plan after another until it is killed, and says so each time.

Plan N follows from N alone, so that who reads one knows whether it is whole.
"""

import asyncio
import sys

from keyplane.adapters.sql.inventory import SqlInventory
from keyplane.ports.inventory import StoredPlan
from tests.contract.inventory.values import digest, stored

ENTRIES = 40


def nth(number: int) -> StoredPlan:
    values = {f"e{n}": str(number // (n + 1)) for n in range(ENTRIES) if (number + n) % 7}
    return stored(f"{number}", values, contents={digest(f"{number}"): b"%d" % number})


async def main(url: str, first: int) -> None:
    inventory = await SqlInventory.open(url)
    number = first
    while True:
        before = nth(number - 1)
        await inventory.commit(
            nth(number),
            parent=None if number == 0 else digest(f"{number - 1}"),
            rollout=b"%d" % number,
            base=before.entries,
            who="child",
            at_ms=number,
        )
        print(number, flush=True)
        number += 1


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
