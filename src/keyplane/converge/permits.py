"""Before anything of a guarded entry is stopped, its controller has to grant a permit.

An entry asks by its report and has its answer with the next ask of its agent; so nothing is lost
that is not made up for by a heartbeat. A permit is held from its grant until the entry is up
again (`serving`), over lives of the agent too, and covers every stop until then. An entry that is
of no guarded set asks for none.
"""

from keyplane.converge.draft import Draft, Standing
from keyplane.converge.frozen import replace
from keyplane.converge.state import Permit
from keyplane.model.names import EntryId


def is_guarded(draft: Draft, entry: EntryId) -> bool:
    """As it is declared; as it was, where it is to go; taken to be, where nobody knows any more."""
    wanted = draft.state.wanted.get(entry)
    if wanted is not None:
        return wanted.declared.guarded
    memory = draft.memory(entry)
    return memory is not None and (memory.guarded or not memory.key)


def may_stop(draft: Draft, entry: EntryId, standing: Standing) -> bool:
    """Whether something of the entry may be stopped now; asks for the permit if it has none."""
    if not is_guarded(draft, entry):
        return True
    standing.asks = True
    permit = draft.permits.get(entry)
    if permit is None:
        permit = ask(draft, entry, up=True, since_ms=draft.now + draft.wall_ms)
    return permit.held


def ask(draft: Draft, entry: EntryId, *, up: bool, since_ms: int) -> Permit:
    """Ask under a new name: what is granted under an earlier one is none."""
    draft.asked += 1
    name = f"{draft.state.boot}/{draft.asked}"
    draft.permits[entry] = Permit(name=name, up=up, since_ms=since_ms)
    return draft.permits[entry]


def awaits(draft: Draft, entry: EntryId) -> bool:
    """It asked for a permit and has none yet."""
    permit = draft.permits.get(entry)
    return permit is not None and not permit.held


def granted(draft: Draft, entry: EntryId, name: str, *, up: bool) -> bool:
    """Take in a grant; False for one that is not asked for, or is held already."""
    permit = draft.permits.get(entry)
    if permit is None or permit.held or permit.name != name or permit.up != up:
        return False
    draft.permits[entry] = replace(permit, held=True)
    return True
