"""The orders that an inventory keeps, exactly: which text, offer and report follows which.

Rules without state, for every implementation of the inventory to share.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from keyplane.model.declaration import NO_OFFER, OfferNumber, Report
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.occurrence import Act, Cause, Occurrence

GENERATIONS_KEPT = 20
"""Enough to go back a day of busy editing; each one more costs only what moved in it."""

ROLLOUTS_KEPT = 200
"""A week of busy editing to look back on; a rollout's state may take a megabyte."""

LIVES_MAX = 16
"""Lives of one agent that are told apart. No report outlasts so many restarts on its way."""

OVERTAKEN_MAX_MS = 10_000
"""How long a report of an agent's former life may be on its way: asks time out sooner."""


OCCURRENCES_KEPT = 200
"""Of one entry: weeks of one that is let alone, a day of one that ends every ten minutes."""

WHOLE_MACHINE = EntryId("")
"""Of which entry a gap is: of any."""


def revision_digest(files: Mapping[str, bytes]) -> Digest:
    """Of the whole text. Lengths part paths from contents, so that no two texts are one."""
    whole = hashlib.sha256()
    for path in sorted(files):
        name = path.encode(errors="surrogateescape")
        whole.update(b"%d:%d:" % (len(name), len(files[path])))
        whole.update(name)
        whole.update(files[path])
    return Digest(f"sha256-{whole.hexdigest()}")


def revision_after(newest: int | None, *, same_text: bool) -> int:
    """The number of a text that comes after the newest revision: its own, if it is the same."""
    if newest is None:
        return 1
    return newest if same_text else newest + 1


def next_offer(last: OfferNumber | None) -> OfferNumber:
    before = NO_OFFER if last is None else last
    return OfferNumber(before.epoch, before.counter + 1)


def offer_above(had: OfferNumber) -> OfferNumber:
    """For a machine that has a number which the inventory forgot, or gave to something else.

    In an epoch of its own, so that no number that was given before and forgotten equals it.
    """
    return OfferNumber(had.epoch + 1, 1)


def unheard(known: Mapping[str, int], report: Report) -> tuple[Occurrence, ...]:
    """What a report tells that was not told before, and before it what is missing.

    `known` has the last number that was told of each history of the machine.
    """
    before = known.get(report.history, 0)
    fresh = [each for each in report.occurrences if each.number > before]
    found: list[Occurrence] = []
    if fresh and known and report.history not in known:
        text = "the machine began a new history: what it had not told of the former one is lost"
        found.append(_gap(fresh[0], text))
    for each in fresh:
        missing = each.number - before - 1
        if missing:
            are = "one more thing" if missing == 1 else f"{missing} more things"
            found.append(_gap(each, f"{are} happened on the machine, and were never told"))
        found.append(each)
        before = each.number
    return tuple(found)


def said_on_machine(found: Iterable[Occurrence]) -> tuple[Occurrence, ...]:
    """What people said there and nobody here has heard of before: it is audited as they said it."""
    return tuple(each for each in found if each.who and each.act in (Act.STOP, Act.START))


def _gap(after: Occurrence, text: str) -> Occurrence:
    return Occurrence(
        number=after.number,
        at_ms=after.at_ms,
        entry=WHOLE_MACHINE,
        unit=UnitName(""),
        act=Act.GAP,
        cause=Cause.UNKNOWN,
        detail=text,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """The last that was heard of one life of an agent."""

    boot: str
    sequence: int
    ended_ms: int = 0
    """When another life was first heard instead; 0 for the one that lasts."""


def heard(
    lives: tuple[Life, ...], *, boot: str, sequence: int, now_ms: int
) -> tuple[Life, ...] | None:
    """The lives once this report is counted, the present one first; None if it is an old one.

    Within a life the sequence decides; the same one again is no older. A life that was followed
    by another is over: its late reports are old. Yet if it speaks with a higher sequence once no
    late report can be on its way, it was the other that came late, and it is the present one.
    """
    present = Life(boot=boot, sequence=sequence)
    if not lives:
        return (present,)
    former = next((life for life in lives if life.boot == boot), None)
    if boot == lives[0].boot:
        return (present, *lives[1:]) if sequence >= lives[0].sequence else None
    since_ms = 0 if former is None else now_ms - former.ended_ms
    if former is not None and (
        # A clock that was set back says nothing of how long it has been.
        sequence <= former.sequence or 0 <= since_ms < OVERTAKEN_MAX_MS
    ):
        return None
    ended = replace(lives[0], ended_ms=now_ms)
    others = (life for life in lives[1:] if life.boot != boot)
    return (present, ended, *others)[:LIVES_MAX]
