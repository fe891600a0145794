"""Which archives of the store are held: by what twenty generations name, and machines run."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import nacl.signing
import pytest

from keyplane.model.names import Digest, EntryId
from keyplane.model.volumes import OrderChange, OrderKind, VolumeOrder
from keyplane.parts.collecting import Collecting
from keyplane.parts.offering import Offering
from keyplane.ports import ordering
from keyplane.ports.inventory import StoredPlan
from keyplane.rollout import machine
from keyplane.rollout import state as states
from keyplane.rollout.planned import MixedEntry
from keyplane.rollout.refuge import Refuge
from keyplane.testing.bus import MemoryBus, MemoryControllerBus
from keyplane.testing.clock import ManualClock
from keyplane.testing.inventory import MemoryInventory
from keyplane.testing.store import MemoryStore
from tests.contract.inventory.values import digest, planned, stored


def naming(number: int) -> StoredPlan:
    """A target whose one entry has an archive of its own."""
    name = EntryId("mygame:server@alpha")
    plan, made = stored(f"g{number}", {"mygame": f"v{number}"}), planned(f"v{number}")
    entry = msgspec.structs.replace(made.entry, artifacts={"code": archive(number)})
    return replace(plan, entries={name: replace(made, entry=entry)})


def archive(number: int) -> Digest:
    return Digest(digest(f"archive {number}"))


async def unheard(*_: object, **__: object) -> None:
    pass


def collecting_of(
    inventory: MemoryInventory, store: MemoryStore, clock: ManualClock, audit: object = unheard
) -> Collecting:
    return Collecting(
        inventory=inventory,
        offering=Offering(
            inventory=inventory,
            bus=MemoryControllerBus(MemoryBus()),
            clock=clock,
            key=nacl.signing.SigningKey.generate(),
        ),
        shelf=store,
        controller=SimpleNamespace(work=asyncio.Lock(), audit=audit),  # type: ignore[arg-type]
        clock=clock,
    )


async def test_the_archive_of_the_twenty_first_generation_goes() -> None:
    """And the audit log has who had it go, and who switched that on; not what was so already."""
    inventory, store, clock = MemoryInventory(), MemoryStore(), ManualClock()
    said: list[tuple[str, str, dict[str, object]]] = []

    async def audit(who: str, what: str, **detail: object) -> None:
        said.append((who, what, detail))

    collecting = collecting_of(inventory, store, clock, audit)
    count = ordering.GENERATIONS_KEPT + 1
    for number in range(count):
        store.archives[archive(number)], store.made[archive(number)] = b"", number
        await inventory.commit(
            naming(number),
            parent=digest(f"g{number - 1}") if number else None,
            rollout=b"",
            base={},
            who="ana",
            at_ms=number,
        )
    looked = await collecting.look()
    assert [each.digest for each in looked.archives if each.goes] == [archive(0)]
    for _ in range(2):
        await collecting.set_automatic(automatic=True, who="ana")
    swept = await collecting.let_go("ana")
    assert swept.removed == [archive(0)]
    assert not (await collecting.let_go("ana")).removed
    assert said == [
        ("ana", "collection", {"automatic": "on"}),
        ("ana", "collection", {"archives": 1}),
    ]
    assert len(store.archives) == ordering.GENERATIONS_KEPT


async def test_what_the_latest_rollout_may_go_back_to_stays() -> None:
    """Be it older than all kept generations: its base, and what was before an earlier rollout."""
    inventory, store, clock = MemoryInventory(), MemoryStore(), ManualClock()
    collecting = collecting_of(inventory, store, clock)
    for number in range(4):
        store.archives[archive(number)], store.made[archive(number)] = b"", number
    ((name, former),) = naming(1).entries.items()
    state = machine.begin(base={}, base_edges=[], target={}, target_edges=[], reports={})
    fled = Refuge(planned=MixedEntry(entry=former.entry))
    await inventory.commit(
        naming(3),
        parent=None,
        rollout=states.encode(replace(state, refuges={name: fled})),
        base=naming(2).entries,
        who="ana",
        at_ms=1,
    )
    looked = await collecting.look()
    assert [each.digest for each in looked.archives if each.goes] == [archive(0)]


@pytest.mark.parametrize("kind", [OrderKind.SAVE, OrderKind.TAKE])
async def test_nothing_goes_while_data_is_on_its_way(kind: OrderKind) -> None:
    """A machine has put it into the store, and has not told of it yet."""
    inventory, store, clock = MemoryInventory(), MemoryStore(), ManualClock()
    collecting = collecting_of(inventory, store, clock)
    entry, former = EntryId("db:main@beta"), EntryId("db:main@alpha")
    other = former if kind is OrderKind.TAKE else None
    order = VolumeOrder(entry=entry, kind=kind, number=7, who="ana", at_ms=1, other=other)
    await inventory.change_volume_orders(OrderChange(put=(order,)))
    saved, packed = archive(1), archive(2)
    store.archives |= {saved: b"", packed: b""}
    store.made[saved] = 0
    swept = await collecting.let_go("ana")
    assert (swept.removed, saved in store.archives) == ([], True)
    assert [(each.goes, each.held_by) for each in swept.archives if each.digest == saved] == [
        (False, [f"data of {entry}, which may be on its way"])
    ]
    assert [each.held_by for each in swept.archives if each.digest == packed] == [[]]
    await inventory.change_volume_orders(OrderChange(drop=(order,)))
    assert (await collecting.let_go("ana")).removed == [saved]
