"""What of a state is to be written down now, before its effects run. Decides nothing else.

A life that ends at any instant must leave on the disk whatever its effects rest on: what is about
to be done. That something was done need not be there: the next life observes it, as it would if
this one had ended just before it heard of it. So a value that restarts a unit is one write, before
the first of its effects, and one when the last is done.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from keyplane.converge import effects, reaction_state, saved
from keyplane.converge.frozen import replace
from keyplane.converge.history import History
from keyplane.converge.saved import EarlierLife
from keyplane.converge.state import Ledger, State
from keyplane.model.declaration import Declaration

_HARMLESS = (effects.WakeAt, effects.Observe, effects.Probe, effects.SendReport)
"""Effects that change nothing on the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is on the disk."""

    ledger: Ledger
    declaration: Declaration | None
    reactions: reaction_state.State | None
    history: History
    intents: int


def at_first(earlier: EarlierLife, state: State) -> Kept:
    """At the beginning of a life, whose first state may have gone on from what it read.

    What closed while nobody was there, such as a window, is decided in it already, and what a
    person said is heeded where it stood in the declaration alone. What there was not is no write
    by itself.
    """
    reactions = earlier.reactions
    if reactions is None and not state.reactions.units:
        reactions = state.reactions
    ledger = earlier.ledger or Ledger()
    return Kept(
        ledger=state.ledger if state.ledger == ledger else ledger,
        declaration=earlier.declaration,
        reactions=reactions,
        history=earlier.history or History(name=state.boot),
        intents=0,
    )


def due(
    kept: Kept, state: State, issued: Iterable[effects.Effect], *, is_late: bool
) -> tuple[Kept, dict[str, bytes]]:
    """What is to be written before these effects run, by its name, and what is on the disk then.

    `is_late` if what is known of dynamic values has waited for long enough: a burst of words is no
    burst of writes, as what is lost of it is heard again.
    """
    acts = _acts(issued)
    contents: dict[str, bytes] = {}
    if kept.declaration is not state.declaration and state.declaration is not None:
        contents[saved.DECLARATION] = saved.encode_declaration(state.declaration)
        kept = replace(kept, declaration=state.declaration)
    if kept.reactions is not state.reactions and (acts or is_late):
        contents[saved.REACTIONS] = saved.encode_reactions(state.reactions)
        kept = replace(kept, reactions=state.reactions)
    if kept.intents == state.intents and (acts or _acts(state.in_flight.values())):
        return kept, contents
    # Before the ledger, which would else have counted what nobody can look back on.
    if kept.history.last != state.history.last:
        contents[saved.HISTORY] = saved.encode_history(state.history)
        kept = replace(kept, history=state.history)
    if kept.ledger is not state.ledger:
        contents[saved.LEDGER] = saved.encode_ledger(state.ledger)
        kept = replace(kept, ledger=state.ledger, intents=state.intents)
    return kept, contents


def _acts(issued: Iterable[effects.Effect]) -> bool:
    return any(not isinstance(each, _HARMLESS) for each in issued)
