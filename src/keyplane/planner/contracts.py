"""The dynamic contract of one value: where it comes from, and how its reader reacts."""

from collections.abc import Sequence

from keyplane.model import duration
from keyplane.model.module import Json, OnMissing, Reaction, ReactionKind
from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.program import Contract
from keyplane.planner.rows import ENTRY, Fault
from keyplane.planner.terms import Live, Parts

_STRENGTH = {ReactionKind.RESTART: 0, ReactionKind.RELOAD: 1, ReactionKind.LIVE: 2}
_CAUTION = {OnMissing.STOP: 0, OnMissing.KEEP_LAST: 1, OnMissing.DEFAULT: 2}


def contract(
    draft: Draft, assignment: Assignment, parts: Parts, faults: list[Fault], *, alone: bool
) -> Contract:
    """The contract for a text with dynamic references in it; a fault for each unstated reaction.

    A reference that stands alone needs no template: several sources are then joined by one space.
    """
    lives: dict[str, Live] = {}
    for part in parts:
        if isinstance(part, Live):
            lives.setdefault(part.text, part)
    reactions: list[Reaction] = []
    for live in lives.values():
        said = assignment.role.reactions.get(live.reaction)
        stated = said is not None and said.reaction is not None
        if not stated and not assignment.is_dropped(draft, "reactions", live.reaction, "reaction"):
            faults.append(_missing(live))
        if said is not None:
            reactions.append(said)
    staleness = [said.max_staleness for said in reactions if said.max_staleness is not None]
    kinds = [said.reaction for said in reactions if said.reaction is not None]
    shortest = min(staleness, key=lambda one: one.milliseconds, default=None)
    return Contract(
        lives=tuple(lives.values()),
        template=None if alone else parts,
        reaction=min(kinds, key=_STRENGTH.__getitem__).value if kinds else None,
        on_missing=_on_missing(reactions),
        max_staleness=None if shortest is None else duration.print_ms(shortest.milliseconds),
    )


def _on_missing(reactions: Sequence[Reaction]) -> Json:
    if not reactions:
        return OnMissing.KEEP_LAST.value
    said = min(reactions, key=lambda one: _CAUTION[one.on_missing])
    if said.on_missing is OnMissing.DEFAULT:
        return {"default": said.default}
    return said.on_missing.value


def _missing(live: Live) -> Fault:
    return Fault(
        code="reaction-missing",
        path=f"reactions.{live.reaction}",
        message=f"{live.reaction} lands on the dynamic plane of {ENTRY} and states no reaction",
        resolution=("state reaction = restart | reload | live",),
    )
