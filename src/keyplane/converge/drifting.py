"""What somebody changed under the agent: since when, and whether it was put right.

Decides no act: `paths` finds the change and has it put right.
"""

from keyplane.converge import effects
from keyplane.converge.draft import Draft
from keyplane.converge.frozen import replace
from keyplane.converge.state import Drifted
from keyplane.model.declaration import Drift
from keyplane.model.names import EntryId
from keyplane.model.occurrence import Act, Cause

SHOWN_MS = 600_000
"""What was put right is told of for so long: a person who looks into a trouble finds it. Its place
in the history stays."""


def found(draft: Draft, entry: EntryId, path: str, what: str) -> None:
    live = draft.live(entry)
    known = live.drift.get(path)
    if known is None or known.repaired_ms is not None:
        drifted = Drifted(what=what, since_ms=draft.now)
        draft.set_live(entry, replace(live, drift={**live.drift, path: drifted}))


def repaired(draft: Draft, entry: EntryId, path: str) -> None:
    """An effect at the path was done."""
    live = draft.live(entry)
    known = live.drift.get(path)
    if known is None or known.repaired_ms is not None:
        return
    drifted = replace(known, repaired_ms=draft.now)
    draft.set_live(entry, replace(live, drift={**live.drift, path: drifted}))
    draft.note(entry, None, Act.REPAIR, Cause.DRIFT, f"{path} {known.what}")


def is_right(draft: Draft, entry: EntryId, path: str) -> None:
    """It is as declared though nothing here was done: somebody put it right."""
    live = draft.live(entry)
    known = live.drift.get(path)
    if known is not None and known.repaired_ms is None:
        others = {each: live.drift[each] for each in live.drift if each != path}
        draft.set_live(entry, replace(live, drift=others))


def forget_old(draft: Draft) -> None:
    for entry, live in list(draft.entries().items()):
        kept = {
            path: each
            for path, each in live.drift.items()
            if each.repaired_ms is None or each.repaired_ms + SHOWN_MS > draft.now
        }
        if len(kept) != len(live.drift):
            draft.set_live(entry, replace(live, drift=kept))


def told(draft: Draft, entry: EntryId) -> tuple[Drift, ...]:
    """As it is reported."""
    drift = draft.live(entry).drift
    return tuple(_told(draft, path, drift[path]) for path in sorted(drift))


def _told(draft: Draft, path: str, drifted: Drifted) -> Drift:
    retry = draft.retries.get(effects.path_resource(path))
    repaired = drifted.repaired_ms is not None
    return Drift(
        path=path,
        what=drifted.what,
        since_ms=draft.wall_ms + drifted.since_ms,
        repaired=repaired,
        problem=None if repaired or retry is None else retry.cause,
    )
