"""Says what this machine's services export while they run.

A value is said once it is another one, and again every few seconds, by which the bus writes nothing
that it has. Only here is `missing` said: where a source that gave a value is gone.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec

from keyplane import wire
from keyplane.journal import Journal
from keyplane.model import reaction
from keyplane.model.host import ProcessSpec
from keyplane.model.names import EntryId
from keyplane.model.reaction import Publication
from keyplane.model.typed import typed
from keyplane.ports.bus import ValueBus
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PortError
from keyplane.ports.host import Files
from keyplane.ports.sources import Sources, UnsettledError

log = Journal(__name__.removeprefix("keyplane."))

STATE = "published"
AGAIN_S = 5.0
"""Whoever listens takes three that are missed for silence; a store that was lost is filled so soon."""
SPREAD_S = 2.0
"""A bus that comes back hears all machines say all that they say: over two seconds."""
FILE_S = 0.2
"""A file is looked at so often: one call, and its reader's window is longer by far."""
SETTLE_S = 0.1
"""What is another at a look is looked at again so soon, and counts once it is the same: longer than
it takes to empty a file and to write it, and shorter than what changes by itself."""
COMMAND_MS_MAX = 30_000
COMMAND_MS = 10_000
"""Between two runs of a command that does not say."""
SAYS_MAX = 32
TIMEOUT_MS = 5_000


class _Said(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    value: str | None
    sequence: int | None = None
    """What the bus counted it as; None until it has it."""


_SAID = msgspec.json.Decoder(dict[str, _Said])


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """One dynamic export of this machine."""

    entry: EntryId
    name: str
    """`PROVIDE/EXPORT`."""
    publication: Publication

    @property
    def export(self) -> str:
        return reaction.export_id(self.entry, self.name)


class Publishing:
    """Of one life of an agent."""

    def __init__(  # noqa: PLR0913  # the ports that it stands on
        self,
        *,
        bus: ValueBus,
        files: Files,
        sources: Sources,
        clock: Clock,
        spread: Callable[[], float],
        tell: Callable[[wire.Word], None],
        spec: Callable[[EntryId], ProcessSpec | None],
    ) -> None:
        """`tell` is told of each word before the bus is; `spec` is as what a command is run."""
        self._bus = bus
        self._files = files
        self._sources = sources
        self._clock = clock
        self._spread = spread
        self._tell = tell
        self._spec = spec
        self._offered: Mapping[str, Offered] = {}
        self._said: dict[str, _Said] = self._load()
        self._problems: dict[str, str] = {}
        self._moved = asyncio.Event()
        self._due = asyncio.Event()
        self._is_back = False
        self._is_cut = False
        bus.on_connected(self._come_back)

    def remembered(self) -> list[wire.Word]:
        """What an earlier life said last."""
        return [_word(export, said) for export, said in sorted(self._said.items())]

    def offer(self, offered: Mapping[str, Offered]) -> None:
        """Say just these, by export."""
        if offered != self._offered:
            self._offered = offered
            self._moved.set()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_sources())
            tasks.create_task(self._keep_saying())

    # Sources.

    async def _keep_sources(self) -> None:
        """One task for each export, and one for each entry that says something itself."""
        running: dict[object, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as tasks:
            while True:
                wanted = self._works()
                for work in [work for work in running if work not in wanted]:
                    await _ended(running.pop(work))
                for work in wanted:
                    if work not in running:
                        running[work] = tasks.create_task(self._work(work))
                await self._moved.wait()
                self._moved.clear()

    def _works(self) -> list[Offered | EntryId]:
        own = {each.entry for each in self._offered.values() if each.publication.published}
        read = [each for each in self._offered.values() if not each.publication.published]
        return [*read, *sorted(own)]

    async def _work(self, work: Offered | EntryId) -> None:
        if not isinstance(work, Offered):
            await self._sources.serve(
                work,
                reaction.publish_socket(work),
                lambda name, value: self._say_of(work, name, value),
            )
        elif work.publication.file is not None:
            while True:
                is_settled = self._look(work, work.publication.file)
                await asyncio.sleep(FILE_S if is_settled else SETTLE_S)
        elif work.publication.command is not None:
            every_ms = work.publication.every_ms or COMMAND_MS
            while True:
                await self._ask(work, work.publication.command, every_ms)
                await asyncio.sleep(every_ms / 1000)

    def _look(self, offered: Offered, path: str) -> bool:
        """False where it has to be looked at again before anything of it is said."""
        try:
            found = self._sources.read(path)
        except UnsettledError:
            return False
        except PortError as error:
            self._note(offered, str(error))
            return True
        self._say(offered, None if found is None else found.decode("utf-8", "replace"))
        return True

    async def _ask(self, offered: Offered, command: tuple[str, ...], every_ms: int) -> None:
        spec = self._spec(offered.entry)
        if spec is None:
            self._note(offered, "the entry has no unit, as which the command could be run")
            return
        timeout_ms = min(max(every_ms, 1_000), COMMAND_MS_MAX)
        try:
            found = await self._sources.run(spec, command, timeout_ms=timeout_ms)
        except PortError as error:
            self._note(offered, str(error))
            return
        self._say(offered, None if found is None else found.decode("utf-8", "replace"))

    def _say_of(self, entry: EntryId, name: str, value: str | None) -> str | None:
        """What a service says of its own export, by its name or `PROVIDE/EXPORT`."""
        found = [
            each
            for each in self._offered.values()
            if each.entry == entry
            and each.publication.published
            and name in (each.name, each.name.partition("/")[2])
        ]
        if not found:
            return f"{entry} publishes no {name!r}"
        if len(found) > 1:
            names = ", ".join(sorted(each.name for each in found))
            return f"{name!r} may be any of {names}"
        return self._say(found[0], value)

    def _say(self, offered: Offered, text: str | None) -> str | None:
        """Say it, if it is another; what is wrong with it, if anything is."""
        export = offered.export
        known = self._said.get(export)
        value = None if text is None else typed(text, offered.publication.type)
        if text is not None and value is None:
            problem = f"{text.strip()[:80]!r} is no {offered.publication.type.value}"
            self._note(offered, problem)
            return problem
        self._problems.pop(export, None)
        if known is None and value is None:
            return None  # what never was is not missing
        if known is not None and known.value == value:
            return None
        number = max(self._clock.now_ms(), known.number + 1 if known is not None else 0)
        said = _Said(number=number, value=value)
        if not self._save({**self._said, export: said}):
            return "it cannot be kept now"
        self._tell(_word(export, said))
        self._due.set()
        return None

    def _note(self, offered: Offered, problem: str) -> None:
        """Once for each problem."""
        if self._problems.get(offered.export) != problem:
            self._problems[offered.export] = problem
            log.warning("a source cannot be read", export=offered.export, problem=problem)

    def _load(self) -> dict[str, _Said]:
        data = self._files.read_state(STATE)
        if data is None:
            return {}
        try:
            return _SAID.decode(data)
        except msgspec.MsgspecError:
            return {}

    def _save(self, said: dict[str, _Said]) -> bool:
        """Before anybody hears of it: no later life says another word under this number."""
        try:
            self._files.write_state({STATE: msgspec.json.encode(said)})
        except PortError as error:
            log.warning("a value cannot be kept, so it is not said", cause=str(error))
            return False
        self._said = said
        return True

    # The bus.

    def _come_back(self) -> None:
        self._is_back = True
        self._due.set()

    async def _keep_saying(self) -> None:
        clock = asyncio.get_running_loop().time
        due_all = clock() + self._spread() * AGAIN_S
        while True:
            again = False
            try:
                async with asyncio.timeout_at(due_all):
                    await self._due.wait()
            except TimeoutError:
                again = True
            self._due.clear()
            if self._is_back:
                self._is_back = False
                await asyncio.sleep(self._spread() * SPREAD_S)
                again = True
            if again:
                due_all = clock() + AGAIN_S
            await self._send(again=again)

    async def _send(self, *, again: bool) -> None:
        """What the bus does not have yet; with `again` everything, which writes only what it lost."""
        slots = asyncio.Semaphore(SAYS_MAX)

        async def one(export: str) -> None:
            async with slots:
                await self._send_one(export)

        due = [
            export
            for export in sorted(self._offered)
            if (said := self._said.get(export)) is not None and (again or said.sequence is None)
        ]
        try:
            await asyncio.gather(*(one(export) for export in due))
        except PortError as error:
            if not self._is_cut:
                self._is_cut = True
                log.warning("values are not said on the bus", cause=str(error))
        else:
            self._is_cut = False

    async def _send_one(self, export: str) -> None:
        said = self._said[export]
        payload = wire.encode_word(_word(export, said))
        sequence = await self._bus.say(
            export, payload, only_if_none=said.sequence is not None, timeout_ms=TIMEOUT_MS
        )
        if said.sequence is not None and sequence != said.sequence:
            # Somebody else's word stands there, or what an earlier life of the bus had.
            sequence = await self._bus.say(
                export, payload, only_if_none=False, timeout_ms=TIMEOUT_MS
            )
        now = self._said.get(export)
        if now is not None and now.number == said.number:
            self._said[export] = msgspec.structs.replace(now, sequence=sequence)


async def _ended(task: asyncio.Task[None]) -> None:
    """What it fails with is for its group."""
    task.cancel()
    await asyncio.wait({task})


def _word(export: str, said: _Said) -> wire.Word:
    return wire.Word(export=export, number=said.number, value=said.value)
