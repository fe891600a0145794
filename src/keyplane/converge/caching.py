"""Which unpacked archives a machine lets go of, once all that it was offered has been tried.

Kept is what the declaration names, what the one before it named (a rollback fetches nothing), and
what the ledger has put at a path. While anything runs that is not as declared, nothing goes: what
an older unit runs from is in no declaration any more. Nor while anything acts on the machine or looks
at it.
"""

from keyplane.converge import effects, units, wanted
from keyplane.converge.draft import Draft
from keyplane.converge.state import Kind

_HARMLESS = (effects.Probe, effects.SendReport)


def let_go(draft: Draft) -> None:
    """Issue what takes out of the cache what nothing names, if all is settled."""
    offered = draft.state.declaration is not None
    settled = draft.looked and draft.reporting.settled == draft.state.ledger.offer
    if not (offered and settled) or not _is_as_declared(draft):
        return
    named = tuple(
        sorted({each for entry in draft.state.wanted.values() for each in wanted.archives(entry)})
    )
    if named != draft.archives:
        # Known before anything may go: the next offer may come sooner.
        draft.former_archives, draft.archives = draft.archives, named
    if not all(isinstance(each, _HARMLESS) for each in draft.in_flight.values()):
        return
    placed = {
        owned.spec.digest for owned in draft.paths.values() if owned.spec.kind is Kind.ARCHIVE
    }
    for digest in sorted(draft.artifacts - {*named, *draft.former_archives, *placed}):
        effect = effects.LetGo(digest=digest)
        resource = effects.resource(effect)
        retry = draft.retries.get(effects.attempt(effect))
        if draft.busy(resource) or (retry is not None and retry.at_ms > draft.now):
            continue
        draft.in_flight[resource] = effect
        draft.issued.append(effect)
        # From here on it has to be fetched by whoever wants it.
        draft.artifacts -= {digest}


def _is_as_declared(draft: Draft) -> bool:
    """Whether nothing runs that is not declared so."""
    for entry, live in draft.entries().items():
        here = draft.state.wanted.get(entry)
        declared = {} if here is None else {name: each.digest for name, each in here.units}
        for name, unit in live.units.items():
            if any(process.digest != declared.get(name) for process in units.running(unit)):
                return False
    return True
