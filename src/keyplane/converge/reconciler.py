"""Compares one entry as declared with its ledger and with what is seen, and acts.

Nothing else acts. Level-triggered: it is called again after whatever happens, and asks for what
is still to be done then.
"""

from keyplane.converge import (
    dynamic,
    effects,
    paths,
    reporting,
    resting,
    serving,
    units,
    volumes,
    wanted,
)
from keyplane.converge.draft import Draft, Standing
from keyplane.converge.frozen import replace
from keyplane.converge.state import Wanted
from keyplane.model.names import EntryId


def reconcile(draft: Draft, entry: EntryId, *, of_units: bool) -> None:
    """Issue what one entry needs next, and say how it stands.

    `of_units` if nothing happened to paths: those that were in place are.
    """
    if draft.state.declaration is None:
        return  # nothing is known of what should be: nothing is touched
    if not draft.looked:
        draft.look = True
        return
    draft.set_live(entry, replace(draft.live(entry), wake_ms=None))
    draft.checks.pop(entry, None)
    draft.dues.pop(entry, None)
    draft.rests.pop(entry, None)
    was = resting.before(draft, entry)
    standing = Standing()
    declared = draft.state.wanted.get(entry)
    if declared is None:
        if _retire(draft, entry, standing):
            draft.drop(entry)
            _tried(draft, entry)
            return
    else:
        dynamic.take_up(draft, entry, declared)
        declared = dynamic.filled(draft, entry, declared)
        if volumes.converge(draft, entry, declared, standing):
            ground = units.Ground(in_place=True, tidy=True)
            if not (of_units and draft.live(entry).in_place):
                ground = _converge_paths(draft, entry, declared, standing)
            standing.stuck = bool(standing.failures)
            units.converge(draft, entry, declared, standing, ground)
        else:
            draft.remember_declared(entry, declared.declared)
    serving.settle(draft, entry, standing)
    report = reporting.of_entry(draft, entry, declared, standing)
    live = draft.live(entry)
    if live.report != report:
        draft.set_live(entry, replace(live, report=report))
    if not standing.pending:
        _tried(draft, entry)
    if declared is not None:
        resting.see(draft, entry, declared, standing, was)


def _converge_paths(
    draft: Draft, entry: EntryId, declared: Wanted, standing: Standing
) -> units.Ground:
    draft.remember_declared(entry, declared.declared)
    missing = [each for each in wanted.archives(declared) if each not in draft.artifacts]
    for digest in missing:
        under_way = draft.attempt(entry, effects.Fetch(digest=digest))
        retry = draft.retries.get(effects.archive_resource(digest))
        standing.blame(f"archive {digest}", retry, under_way=under_way)
    in_place = paths.converge(draft, entry, declared, standing)
    if in_place and not units.is_behind(draft, entry, declared):
        paths.remove_leftovers(draft, entry, standing)
    left = draft.leftovers(entry)
    live = draft.live(entry)
    complete = in_place and not missing and not left
    if live.in_place != complete:
        draft.set_live(entry, replace(live, in_place=complete))
    tidy = not any(draft.busy(effects.path_resource(path)) for path in left)
    return units.Ground(in_place=in_place, tidy=tidy)


def _retire(draft: Draft, entry: EntryId, standing: Standing) -> bool:
    """Take a removed entry away; True once nothing of it is left."""
    gone = [units.retire(draft, entry, unit, standing) for unit in units.known(draft, entry)]
    if all(gone):
        paths.remove_leftovers(draft, entry, standing)
    return all(gone) and not units.known(draft, entry) and not draft.leftovers(entry)


def _tried(draft: Draft, entry: EntryId) -> None:
    """Every effect of the accepted offer was tried for it, done or failed."""
    untried = draft.reporting.untried
    if entry not in untried:
        return
    untried -= {entry}
    settled = draft.reporting.settled if untried else draft.state.ledger.offer
    draft.reporting = replace(draft.reporting, untried=untried, settled=settled)
