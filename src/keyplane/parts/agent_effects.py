"""Carries out the brain's effects by the ports of the host, and tells how each went.

Chooses nothing. Every port error comes back as an event; any other error is a bug and is raised.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import assert_never

from keyplane.converge import effects, events
from keyplane.model.declaration import Report
from keyplane.model.host import ObservedPath
from keyplane.model.names import EntryId, UnitName
from keyplane.ports.clock import Clock
from keyplane.ports.errors import PermanentError, PortError
from keyplane.ports.host import Artifacts, Files, Processes, Volumes

TAIL_LINES = 10
"""The last lines of a log that go with a failure: enough for a traceback's end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Performer:
    files: Files
    artifacts: Artifacts
    processes: Processes
    volumes: Volumes
    send: Callable[[Report], Awaitable[None]]
    clock: Clock

    async def perform(self, effect: effects.Effect) -> events.Event:
        resource = effects.resource(effect)
        try:
            return await self._perform(effect, resource)
        except PortError as error:
            return events.EffectFailed(
                at_ms=self.clock.monotonic_ms(),
                resource=resource,
                cause=plain(str(error)),
                permanent=isinstance(error, PermanentError),
                tail=self._tail_after(effect),
            )

    async def _perform(self, effect: effects.Effect, resource: str) -> events.Event:
        match effect:
            case effects.Observe():
                return self._observe(effect)
            case effects.Fetch(digest=digest):
                await self.artifacts.fetch(digest)
            case effects.LetGo(digest=digest):
                await asyncio.to_thread(self.artifacts.remove, digest)
            case effects.WriteFile() | effects.MakeDirectory() | effects.UnpackArchive():
                return await self._put(effect, resource)
            case effects.RemovePath(path=path):
                # A tree may be large: the loop goes on meanwhile.
                await asyncio.to_thread(self.files.remove, path)
            case effects.SaveVolume():
                saved = await self.volumes.save(effect.entry, effect.path, effect.number)
                return events.EffectDone(
                    at_ms=self.clock.monotonic_ms(), resource=resource, saved=saved
                )
            case effects.TakeVolume(path=path):
                kept = await self.volumes.take(
                    path, effect.digest, effect.number, mode=effect.mode, owner=effect.owner
                )
                return events.EffectDone(
                    at_ms=self.clock.monotonic_ms(),
                    resource=resource,
                    path=self.files.observe(path),
                    kept=kept,
                )
            case effects.StartProcess(spec=spec):
                process = await self.processes.start(spec)
                tail = () if process.running else self.tail(spec.entry, spec.unit)
                return events.EffectDone(
                    at_ms=self.clock.monotonic_ms(), resource=resource, process=process, tail=tail
                )
            case effects.StopProcess():
                killed = await self.processes.stop(
                    effect.entry, effect.unit, effect.digest, timeout_ms=effect.timeout_ms
                )
                return events.EffectDone(
                    at_ms=self.clock.monotonic_ms(), resource=resource, killed=killed
                )
            case effects.ForgetProcess():
                self.processes.forget(effect.entry, effect.unit, effect.digest)
            case effects.ReloadProcess(spec=spec, how=how):
                await self.processes.reload(spec.entry, spec.unit, spec.digest, how, spec)
            case effects.Probe(spec=spec, health=health):
                problem = await self.processes.probe(health, spec)
                return events.Probed(
                    at_ms=self.clock.monotonic_ms(),
                    entry=spec.entry,
                    unit=spec.unit,
                    problem=None if problem is None else plain(problem),
                    tail=() if problem is None else self.tail(spec.entry, spec.unit),
                )
            case effects.SendReport(report=report):
                await self.send(report)
            case effects.WakeAt():
                raise AssertionError("a timer is the loop's own")
            case _:
                assert_never(effect)
        return events.EffectDone(at_ms=self.clock.monotonic_ms(), resource=resource)

    async def _put(
        self,
        effect: effects.WriteFile | effects.MakeDirectory | effects.UnpackArchive,
        resource: str,
    ) -> events.Event:
        match effect:
            case effects.WriteFile():
                self.files.write(
                    effect.path,
                    effect.content,
                    mode=effect.mode,
                    owner=effect.owner,
                    group=effect.group,
                )
            case effects.MakeDirectory():
                self.files.make_directory(
                    effect.path, mode=effect.mode, owner=effect.owner, group=effect.group
                )
            case effects.UnpackArchive():
                await asyncio.to_thread(self.files.unpack, effect.digest, effect.path)
            case _:
                assert_never(effect)
        return events.EffectDone(
            at_ms=self.clock.monotonic_ms(),
            resource=resource,
            path=self.files.observe(effect.path),
        )

    def _observe(self, effect: effects.Observe) -> events.Event:
        processes = self.processes.observe()
        looks = {path: self._look(path) for path in effect.paths}
        return events.Observed(
            at_ms=self.clock.monotonic_ms(),
            paths={path: look for path, look in looks.items() if not isinstance(look, str)},
            unseen={path: look for path, look in looks.items() if isinstance(look, str)},
            processes=processes,
            artifacts=self.artifacts.present(),
            tails={
                (each.entry, each.unit): self.tail(each.entry, each.unit)
                for each in processes
                if not each.running
            },
        )

    def _look(self, path: str) -> ObservedPath | str:
        """What stands there, or why that cannot be seen: the others go on."""
        try:
            return self.files.observe(path)
        except PortError as error:
            return plain(str(error))

    def tail(self, entry: EntryId, unit: UnitName) -> tuple[str, ...]:
        return tuple(plain(line) for line in self.processes.tail(entry, unit, TAIL_LINES))

    def _tail_after(self, effect: effects.Effect) -> tuple[str, ...]:
        if isinstance(effect, effects.StartProcess):
            return self.tail(effect.spec.entry, effect.spec.unit)
        return ()


def plain(text: str) -> str:
    """Text that every encoding takes: names of files and lines of logs may be no UTF-8."""
    return text.encode("utf-8", "replace").decode()
