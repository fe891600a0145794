"""What an agent does with dynamic values beside its brain: it follows some, and says others.

Those that its units read, and those that its services export; both by the declaration at hand.
"""

import asyncio
import contextlib
from collections.abc import Callable

from keyplane.converge import dynamic, events, reaction_record, units
from keyplane.converge.draft import Draft
from keyplane.converge.state import State
from keyplane.model.host import ProcessSpec
from keyplane.model.names import EntryId
from keyplane.model.reaction import export_id
from keyplane.parts.agent_publishing import Offered, Publishing
from keyplane.parts.agent_values import Following
from keyplane.ports.bus import ValueBus
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PortError
from keyplane.ports.host import Files
from keyplane.ports.sources import Sources

RECORD = "record"
RECORD_S = 1.0
"""It is for people to look back on: a write a second is enough of it."""
_NEVER = object()


class Dynamic:
    """Of one life of an agent."""

    def __init__(  # noqa: PLR0913  # the ports that it stands on
        self,
        *,
        bus: ValueBus,
        files: Files,
        sources: Sources,
        clock: Clock,
        spread: Callable[[], float],
        feed: Callable[[events.Event], None],
    ) -> None:
        self._state: State | None = None
        self._files = files
        self._clock = clock
        self._feed = feed
        self._record = reaction_record.decode(files.read_state(RECORD))
        self._last: dict[str, str | None] = {
            **self._record.initial,
            **{heard.export: heard.value for heard in self._record.words},
        }
        self._unsaved = asyncio.Event()
        self._following = Following(bus=bus, clock=clock, spread=spread, feed=self._hear)
        self._publishing = Publishing(
            bus=bus,
            files=files,
            sources=sources,
            clock=clock,
            spread=spread,
            tell=lambda word: self._following.hear_own(word, stored=False),
            spec=self._spec,
        )

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._following.run())
            tasks.create_task(self._publishing.run())
            tasks.create_task(self._keep_record())

    def follow(self, state: State) -> None:
        """Keep to what is declared now."""
        before, self._state = self._state, state
        declaration = state.declaration
        if declaration is None or (before is not None and declaration is before.declaration):
            return
        offered = {
            export_id(entry, name): Offered(entry=entry, name=name, publication=publication)
            for entry, declared in declaration.entries.items()
            for name, publication in declared.publishes.items()
        }
        wanted = {
            source
            for of_entry in dynamic.contracts_of(declaration).values()
            for of_unit in of_entry.values()
            for contract in of_unit.values()
            for source in contract.sources
        }
        self._following.want(wanted, wanted & offered.keys())
        self._publishing.offer(offered)
        for word in self._publishing.remembered():
            self._following.hear_own(word, stored=True)

    def _hear(self, event: events.Event) -> None:
        """What is heard, on its way to the brain; kept for people to replay."""
        if isinstance(event, events.ValuesTold):
            now = self._clock.now_ms()
            for one in event.news:
                if self._last.get(one.export, _NEVER) != one.value:
                    self._last[one.export] = one.value
                    heard = reaction_record.Heard(at_ms=now, export=one.export, value=one.value)
                    self._record = reaction_record.add(self._record, heard)
                    self._unsaved.set()
        self._feed(event)

    async def _keep_record(self) -> None:
        while True:
            await self._unsaved.wait()
            self._unsaved.clear()
            # What is lost of it costs nobody anything.
            with contextlib.suppress(PortError):
                self._files.write_state({RECORD: reaction_record.encode(self._record)})
            await asyncio.sleep(RECORD_S)

    def _spec(self, entry: EntryId) -> ProcessSpec | None:
        """As what a command of an entry is run: as its first unit."""
        assert self._state is not None
        wanted = self._state.wanted.get(entry)
        if wanted is None or not wanted.units:
            return None
        draft = Draft(self._state, at_ms=self._state.now_ms)
        name, declared = min(wanted.units, key=lambda unit: unit[0])
        unit = units.Unit(
            entry=entry, name=name, declared=declared, wanted=wanted, ready=True, reloadable=True
        )
        return unit.spec(draft)
