"""From what somebody asks to the text that he means, on top of the newest revision.

One model, many editors: whoever edits says which revision he began from, and is shown what others
made of it since before his own goes over theirs.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from keyplane.documents import comparing, edits, rewriting
from keyplane.model.fleet import Fleet
from keyplane.model.names import MachineName
from keyplane.parts import by_facts, emptying
from keyplane.parts import change_messages as changes
from keyplane.parts.control_client import RefusedError
from keyplane.parts.control_messages import Problem
from keyplane.parts.knowing import Knowing
from keyplane.parts.planning import Planning
from keyplane.ports import ordering
from keyplane.ports.inventory import (
    Inventory,
    KeptGeneration,
    Revision,
    RevisionNote,
)

Json = Any

EDITS_SHOWN = 20
"""Revisions that are shown one by one to whoever is behind; of more, the newest."""
EDITORS_NAMED = 3
"""In the first line: all of them stand above their edits below it."""
BEGINNING_MIN = 4
"""Digits of a generation by which it may be named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A text, and how it came about."""

    files: Mapping[str, bytes]
    newest: Revision | None
    """What it was made from."""
    verb: str
    will: str = ""
    """What it is to change, for a person who is asked; empty: as `said` has it."""
    said: str = ""
    """What it changed, for a person."""
    is_nothing: bool = False
    """There is nothing to do, as `said` has it."""
    detail: Mapping[str, Json] = field(default_factory=dict[str, Json])
    cordon: tuple[MachineName, bool | None] | None = None
    """A machine that is cordoned with it, and whether it is drained; None: no longer."""
    forgets: MachineName | None = None
    """A machine that will not be heard again."""
    take: Mapping[MachineName, Mapping[str, Json]] = field(
        default_factory=dict[MachineName, Mapping[str, Json]]
    )
    """Facts by which it is planned, and all plans after it."""

    @property
    def parent(self) -> int | None:
        return None if self.newest is None else self.newest.number

    @property
    def revision(self) -> int:
        """The number that it has once it is committed."""
        same = self.newest is not None and dict(self.newest.files) == dict(self.files)
        return ordering.revision_after(self.parent, same_text=same)


class Revising:
    """Makes texts; commits none."""

    def __init__(self, *, inventory: Inventory, planning: Planning, facts: Knowing) -> None:
        self._inventory = inventory
        self._facts = facts
        self._planning = planning

    async def made(self, asked: changes.Asked) -> Made:
        """Raises RefusedError where others' edits stand in the way, or nothing can be made of it."""
        newest = await self._inventory.revision()
        match asked:
            case changes.Directory():
                return await self._of_directory(asked, newest)
            case changes.Cordon() | changes.Drain() | changes.Uncordon():
                return await self._cordoned(asked, newest)
            case changes.Rollback():
                return await self._rolled_back(asked, newest)
            case changes.TakeFacts():
                return await self._by_facts(asked, newest)
            case _:
                return await self._edited(asked, newest)

    async def _of_directory(self, asked: changes.Directory, newest: Revision | None) -> Made:
        made = Made(files=asked.files, newest=newest, verb=asked.verb)
        if newest is None or newest.digest == ordering.revision_digest(asked.files):
            return made
        if asked.over is not None:
            if asked.over != newest.number:
                raise await self._edited_since(asked.over, newest, "`--over` names")
            return made
        since = await self._since(asked.descent, newest)
        if since is None:
            raise self._unknown(asked, newest)
        if since != newest.number:
            raise await self._edited_since(since, newest, "this directory descends from")
        return made

    async def _since(self, descent: changes.Descent | None, newest: Revision) -> int | None:
        """The last revision that a directory has in it; None where nobody can tell."""
        if descent is None:
            # A release that did not write it down knew one editor only.
            return newest.number if newest.verb == "" else None
        if newest.number < descent.revision and newest.at_ms <= descent.at_ms:
            return newest.number  # it was restored, and the directory is ahead of it
        start = await self._inventory.revision(descent.revision)
        if start is None or start.digest != descent.digest:
            return None
        if descent.sent is not None:
            for number in range(newest.number, descent.revision, -1):
                each = await self._inventory.revision(number)
                if each is not None and each.digest == descent.sent:
                    return number
        return descent.revision

    async def _edited_since(self, since: int, newest: Revision, known: str) -> RefusedError:
        notes = {
            each.number: each
            for each in await self._inventory.history(max(1, newest.number - since))
            if each.number > since
        }
        rows = [row(notes[number]) for number in sorted(notes)]
        shown = [
            changes.Edited(revision=each, difference=await self.difference(each.revision))
            for each in rows[-EDITS_SHOWN:]
        ]
        message = f"the fleet was edited since revision {since}, which {known}"
        if rows:
            message += f": with {edited_by(rows)}"
        return RefusedError(
            Problem(code="edited-since", message=message, edits=shown, revision=newest.number)
        )

    def _unknown(self, asked: changes.Directory, newest: Revision) -> RefusedError:
        """Nobody knows what was edited since: what this text would make of it is shown instead."""
        says = (
            "does not say which revision it descends from"
            if asked.descent is None
            else f"says that it descends from a revision {asked.descent.revision} "
            "that is not this fleet's"
        )
        return RefusedError(
            Problem(
                code="unknown-descent",
                message=f"this directory {says}, and revision {newest.number} is another text",
                difference=comparing.difference(newest.files, asked.files),
                revision=newest.number,
            )
        )

    async def difference(self, number: int) -> str:
        """Of a revision to the one before it."""
        after = await self._inventory.revision(number)
        before = await self._inventory.revision(number - 1)
        return await asyncio.to_thread(
            comparing.difference,
            {} if before is None else before.files,
            {} if after is None else after.files,
        )

    async def _edited(self, asked: changes.Edit, newest: Revision | None) -> Made:
        if newest is None:
            raise _refused("no-revision", "nothing was applied yet: `keyplane apply DIR` begins")
        documents = await asyncio.to_thread(self._planning.documents, newest.files)
        if documents.fleet is None:
            raise _refused("unreadable", f"the fleet of revision {newest.number} cannot be read")
        match asked:
            case changes.SetValue():
                found = edits.set_value(documents, asked.place, asked.value)
            case changes.Assign():
                found = edits.assign(documents, asked.instance, asked.machine)
            case changes.Unassign():
                found = edits.unassign(documents, asked.instance, asked.machine)
            case changes.Pin():
                found = edits.pin(documents, asked.machine, asked.interface, asked.provider)
            case changes.Unpin():
                found = edits.unpin(documents, asked.machine, asked.interface)
            case changes.RemoveMachine():
                await self._check_empty(asked, documents.fleet)
                found = edits.remove_machine(documents, asked.machine)
            case _:
                assert_never(asked)
        if isinstance(found, edits.Refused):
            raise _refused("edit", found.message)
        verb = str(type(asked).__struct_config__.tag)
        if not found.steps:
            return Made(
                files=newest.files, newest=newest, verb=verb, said=found.said, is_nothing=True
            )
        files = await asyncio.to_thread(rewriting.rewrite, newest.files, found.steps)
        if isinstance(files, edits.Refused):
            raise _refused("edit", files.message)
        made = Made(files=files, newest=newest, verb=verb, will=found.will, said=found.said)
        if isinstance(asked, changes.RemoveMachine):
            machine = MachineName(asked.machine)
            forgets = machine if asked.lost else None
            detail = {"machine": machine, "lost": asked.lost}
            made = replace(made, cordon=(machine, None), forgets=forgets, detail=detail)
        return made

    async def _check_empty(self, asked: changes.RemoveMachine, fleet: Fleet) -> None:
        """A machine that runs something is drained first, or lost."""
        machine = MachineName(asked.machine)
        target, cordon = await self._inventory.target(), await self._inventory.cordons()
        here = emptying.on(target.entries if target else (), machine)
        is_drained = machine in cordon and cordon[machine].drain
        if here and not asked.lost and not is_drained:
            raise _refused(
                "not-drained",
                f"{machine} has {', '.join(here)}",
                *emptying.ways(fleet, machine, here),
            )

    async def _cordoned(self, asked: changes.Cordoning, newest: Revision | None) -> Made:
        target = await self._inventory.target()
        if newest is None or target is None:
            raise _refused("no-revision", "nothing was applied yet: `keyplane apply DIR` begins")
        documents = await asyncio.to_thread(self._planning.documents, newest.files)
        fleet = documents.fleet
        machine = MachineName(asked.machine)
        if fleet is None or machine not in fleet.machines:
            known = ", ".join(sorted(fleet.machines if fleet else ()))
            raise _refused("unknown-machine", f"no machine `{machine}`: the machines are {known}")
        drain = None if isinstance(asked, changes.Uncordon) else isinstance(asked, changes.Drain)
        before = (await self._inventory.cordons()).get(machine)
        match drain:
            case None:
                will = f"{machine} will take what is placed by count again"
                said = f"{machine} takes what is placed by count again"
            case False:
                will = f"nothing new will be placed on {machine} by count"
                said = f"nothing new is placed on {machine} by count"
            case True:
                here = emptying.on(target.entries, machine)
                will, said = emptying.drained(fleet, machine, here)
        is_nothing = drain == (None if before is None else before.drain) and not drain
        return Made(
            files=newest.files,
            newest=newest,
            verb=str(type(asked).__struct_config__.tag),
            will="" if is_nothing else will,
            said=f"{said} already" if is_nothing else said,
            is_nothing=is_nothing,
            detail={"machine": machine},
            cordon=(machine, drain),
        )

    async def _by_facts(self, asked: changes.TakeFacts, newest: Revision | None) -> Made:
        if newest is None:
            raise _refused("no-revision", "nothing was applied yet: `keyplane apply DIR` begins")
        known = await self._facts.known()
        if unknown := sorted(set(asked.machines) - known.keys()):
            raise _refused(
                "unknown-machine",
                f"{', '.join(unknown)} never said anything of itself: those that did are "
                f"{', '.join(sorted(known)) or 'none'}",
            )
        take = {
            machine: {name: stored.facts[name].value for name in stored.moved}
            for machine, stored in known.items()
            if stored.moved and (not asked.machines or machine in asked.machines)
        }
        if not take:
            said = "plans go by what machines say already"
            return Made(files=newest.files, newest=newest, verb="facts", said=said, is_nothing=True)
        return Made(
            files=newest.files,
            newest=newest,
            verb="facts",
            will=f"plans will go by {by_facts.told(take)}",
            said=f"plans go by {by_facts.told(take)}",
            detail={"facts": {machine: sorted(said) for machine, said in take.items()}},
            take=take,
        )

    async def _rolled_back(self, asked: changes.Rollback, newest: Revision | None) -> Made:
        kept = await self._inventory.generations()
        if newest is None or not kept:
            raise _refused(
                "no-generation", "nothing was applied yet, so there is nothing before it"
            )
        chosen = _chosen(asked.generation, kept)
        recorded = await self._inventory.revision(chosen.revision)
        if recorded is None:
            raise _refused("no-revision", f"the text of revision {chosen.revision} is not kept")
        files = {path: data for path, data in recorded.files.items() if not _is_fact(path)}
        files |= {path: data for path, data in newest.files.items() if _is_fact(path)}
        name = f"generation {short(chosen.generation)}, revision {chosen.revision}"
        is_nothing = files == dict(newest.files)
        return Made(
            files=files,
            newest=newest,
            verb="rollback",
            will="" if is_nothing else f"the text will be that of {name} again",
            said=f"the text is that of {name} already" if is_nothing else f"back to {name}",
            is_nothing=is_nothing,
            detail={"to": {"generation": chosen.generation, "revision": chosen.revision}},
        )


def _chosen(named: str | None, kept: tuple[KeptGeneration, ...]) -> KeptGeneration:
    known = ", ".join(f"{short(each.generation)} (revision {each.revision})" for each in kept)
    if named is None:
        if len(kept) == 1:
            raise _refused("no-generation", f"no generation is kept before the target, {known}")
        return kept[1]
    beginning = named.removeprefix("sha256-")
    found = [each for each in kept if each.generation[7:].startswith(beginning)]
    if len(found) == 1 and len(beginning) >= BEGINNING_MIN:
        return found[0]
    several = "several generations begin" if found else "no generation that is kept begins"
    raise _refused("no-generation", f"{several} with `{named}`: there are {known}")


def _is_fact(path: str) -> bool:
    """Of the machines, not of people: what they are today counts."""
    return path.startswith("facts/")


def short(generation: str) -> str:
    return generation.removeprefix("sha256-")[:12]


def edited_by(rows: Sequence[changes.RevisionRow]) -> str:
    """Who edited, and with what: each once, and of many the first."""
    acts = list(dict.fromkeys((each.verb or "apply", each.who) for each in rows))
    told = [f"`{verb}` by {who}" for verb, who in acts[:EDITORS_NAMED]]
    more = [f"{len(acts) - EDITORS_NAMED} more"] if len(acts) > EDITORS_NAMED else []
    return ", ".join((*told, *more))


def row(note: RevisionNote) -> changes.RevisionRow:
    return changes.RevisionRow(
        revision=note.number,
        at_ms=note.at_ms,
        who=note.who,
        verb=note.verb,
        why=note.why,
        parent=note.parent,
        generation=note.generation,
        moved=note.moved,
    )


def _refused(code: str, message: str, *ways: str) -> RefusedError:
    return RefusedError(Problem(code=code, message=message, ways=list(ways)))
