"""What is done at an entry's paths: written, made, unpacked, taken over, refused, removed.

Removes only what the ledger says we put there. A path that another entry now declares is left
to that entry.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import assert_never

from keyplane.converge import drifting, effects
from keyplane.converge.draft import Draft, Standing, about
from keyplane.converge.frozen import replace
from keyplane.converge.state import Kind, Owned, PathSpec, Wanted
from keyplane.model.host import ObservedPath, PathKind
from keyplane.model.names import EntryId

_AS = {
    Kind.FILE: PathKind.FILE,
    Kind.DIRECTORY: PathKind.DIRECTORY,
    Kind.ARCHIVE: PathKind.ARCHIVE,
}
_resource = effects.path_resource
ABSENT = ObservedPath(kind=PathKind.ABSENT)


class Act(Enum):
    """What a path needs."""

    NOTHING = auto()
    TAKE_OVER = auto()
    """It is as declared already, and only the ledger does not say that it is ours."""
    APPLY = auto()
    CLEAR = auto()
    """Something of ours and of another kind stands there."""
    REFUSE = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    act: Act
    why: str = ""
    """Of a refusal, or what of an applied path was changed under us."""
    found: bool = False


NOTHING = Verdict(Act.NOTHING)


def judge(spec: PathSpec, owned: Owned | None, seen: ObservedPath) -> Verdict:
    """What has to be done so that what is seen becomes what is wanted."""
    if owned is None or (_is_unsure(owned) and seen.digest != owned.spec.digest):
        return _judge_foreign(spec, seen)
    if owned.spec.kind is not spec.kind:
        if seen.kind is PathKind.ABSENT:
            return Verdict(Act.APPLY)
        if owned.spec.keep or owned.found:
            return Verdict(Act.REFUSE, "a directory that must not be lost stands there")
        return Verdict(Act.CLEAR)
    if spec.keep and seen.kind is PathKind.DIRECTORY and spec.owner is None and spec.group is None:
        return Verdict(Act.NOTHING if owned.applied else Act.TAKE_OVER, found=owned.found)
    if not owned.applied:
        act = Act.TAKE_OVER if _as_declared(spec, seen) else Act.APPLY
        return Verdict(act, found=owned.found)
    if owned.spec != spec and _shape(owned.spec) != _shape(spec):
        return Verdict(Act.APPLY, found=owned.found)
    changed = _drift(owned, seen)
    if changed and spec.kind is Kind.DIRECTORY and seen.kind is PathKind.LINK and not spec.keep:
        return Verdict(Act.CLEAR, changed, owned.found)  # the link alone, never what it leads to
    return Verdict(Act.APPLY, changed, owned.found) if changed else NOTHING


def _is_unsure(owned: Owned) -> bool:
    """A file that was to be written for the first time, by an effect of which no end was told."""
    return owned.fresh and owned.spec.kind is Kind.FILE


def _judge_foreign(spec: PathSpec, seen: ObservedPath) -> Verdict:
    if seen.kind is PathKind.ABSENT:
        return Verdict(Act.APPLY)
    if _as_declared(spec, seen):
        return Verdict(Act.TAKE_OVER, found=spec.kind is Kind.DIRECTORY)
    match spec.kind, seen.kind:
        case (Kind.FILE, PathKind.FILE) if seen.digest == spec.digest or spec.adopt:
            return Verdict(Act.APPLY)
        case (Kind.FILE, PathKind.LINK) if spec.adopt:
            return Verdict(Act.APPLY)  # the link itself is replaced, never what it leads to
        case (Kind.FILE, PathKind.FILE | PathKind.LINK):
            way_out = "`adopt = true` on the resource would replace it"
            return Verdict(
                Act.REFUSE, f"a {seen.kind} that is not ours was there before; {way_out}"
            )
        case (Kind.ARCHIVE, PathKind.ARCHIVE):
            return Verdict(Act.APPLY)  # an agent that has lost its ledger unpacked it
        case (Kind.DIRECTORY, PathKind.DIRECTORY):
            untouched = spec.keep and spec.owner is None and spec.group is None
            return Verdict(Act.TAKE_OVER if untouched else Act.APPLY, found=True)
        case _:
            return Verdict(Act.REFUSE, f"a {seen.kind} that is not ours was there before")


def _shape(spec: PathSpec) -> PathSpec:
    return replace(spec, adopt=False, keep=False)


def _as_declared(spec: PathSpec, seen: ObservedPath) -> bool:
    return (
        seen.kind is _AS[spec.kind]
        and (spec.digest is None or seen.digest == spec.digest)
        and (spec.mode is None or _same_mode(spec.mode, seen.mode))
        and (spec.owner is None or spec.owner == seen.owner)
        and (spec.group is None or spec.group == seen.group)
    )


def _same_mode(declared: str, seen: str | None) -> bool:
    return seen is not None and declared.lstrip("0") == seen.lstrip("0")


def _drift(owned: Owned, seen: ObservedPath) -> str:
    """What differs from how it looked once applied; empty if nothing does."""
    spec, after = owned.spec, owned.after
    if seen.kind is PathKind.ABSENT:
        return "was gone"
    if seen.kind is not _AS[spec.kind]:
        return f"was a {seen.kind}"
    if spec.digest is not None and seen.digest != spec.digest:
        return "had other content"
    if spec.keep or after is None or spec.kind is Kind.ARCHIVE:
        return ""
    if spec.mode is not None and seen.mode != after.mode:
        return f"had mode {seen.mode}"
    if spec.owner is not None and seen.owner != after.owner:
        return f"belonged to {seen.owner}"
    if spec.group is not None and seen.group != after.group:
        return f"was of group {seen.group}"
    return ""


def converge(draft: Draft, entry: EntryId, wanted: Wanted, standing: Standing) -> bool:
    """Bring every path nearer to what is declared; True once all are."""
    held: list[str] = []
    for path, spec in wanted.paths.items():
        below = any(path.startswith(f"{above.rstrip('/')}/") for above in held)
        if below or not _converge_path(draft, entry, path, spec, standing):
            held.append(path)
    return not held


def _converge_path(
    draft: Draft, entry: EntryId, path: str, spec: PathSpec, standing: Standing
) -> bool:
    seen = draft.seen.get(path)
    retry = draft.retries.get(_resource(path))
    if draft.busy(_resource(path)):
        standing.blame(path, retry, under_way=True)
        return False
    if seen is None:
        _await_look(draft, path, standing)
        return False
    owned = draft.paths.get(path)
    verdict = judge(spec, owned, seen)
    match verdict.act:
        case Act.NOTHING:
            assert owned is not None
            drifting.is_right(draft, entry, path)
            if owned.entry != entry or owned.spec != spec:
                draft.own(path, replace(owned, entry=entry, spec=spec))
            return True
        case Act.TAKE_OVER:
            taken = Owned(entry=entry, spec=spec, applied=True, found=verdict.found, after=seen)
            draft.own(path, taken)
            return True
        case Act.REFUSE:
            standing.failures.append(f"{path}: {verdict.why}")
            standing.refused = True
            return False
        case Act.CLEAR:
            if verdict.why:
                drifting.found(draft, entry, path, verdict.why)
            under_way = draft.attempt(entry, effects.RemovePath(entry=entry, path=path))
        case Act.APPLY:
            if spec.kind is Kind.ARCHIVE and spec.digest not in draft.artifacts:
                return False  # the fetch tells how it stands
            if verdict.why:
                drifting.found(draft, entry, path, verdict.why)
            fresh = owned is None or owned.fresh
            intent = Owned(entry=entry, spec=spec, fresh=fresh, found=verdict.found)
            under_way = draft.attempt(entry, _applying(draft, entry, path, spec))
            if under_way and intent != owned:
                draft.own(path, intent)
        case _:
            assert_never(verdict.act)
    standing.blame(path, retry, under_way=under_way)
    return False


def _await_look(draft: Draft, path: str, standing: Standing) -> None:
    if path in draft.unseen:
        standing.failures.append(about(path, draft.unseen[path]))
        standing.refused = True
    else:
        draft.look = True
        standing.blame(path, draft.retries.get(_resource(path)), under_way=True)


def _applying(draft: Draft, entry: EntryId, path: str, spec: PathSpec) -> effects.OfPath:
    match spec.kind:
        case Kind.FILE:
            assert spec.digest is not None
            return effects.WriteFile(
                entry=entry,
                path=path,
                content=draft.content(spec.digest),
                mode=spec.mode or "0644",
                owner=spec.owner,
                group=spec.group,
            )
        case Kind.DIRECTORY:
            return effects.MakeDirectory(
                entry=entry,
                path=path,
                mode=spec.mode or "0755",
                owner=spec.owner,
                group=spec.group,
            )
        case Kind.ARCHIVE:
            assert spec.digest is not None
            return effects.UnpackArchive(entry=entry, path=path, digest=spec.digest)
        case _:
            assert_never(spec.kind)


def applied(draft: Draft, path: str, seen: ObservedPath | None) -> None:
    """An effect at a path was done. What then stands there is taken to be what was asked.

    Whoever else writes there is found by the next full pass, and not in a race.
    """
    owned = draft.paths.get(path)
    if owned is None:
        return
    spec = owned.spec
    found = seen or ObservedPath(kind=_AS[spec.kind])
    after = replace(found, kind=_AS[spec.kind], digest=spec.digest)
    draft.own(path, replace(owned, applied=True, fresh=False, after=after), is_outcome=True)
    draft.see(path, after)
    drifting.repaired(draft, owned.entry, path)


def failed(draft: Draft, path: str) -> None:
    """An effect at a path was not done: what was never ours is not ours now either.

    A tree may have been unpacked by half, and stays ours.
    """
    owned = draft.paths.get(path)
    if owned is not None and owned.fresh and owned.spec.kind is not Kind.ARCHIVE:
        draft.disown(path)
        draft.look_anew([path])  # somebody else may put something there until it is tried again


def removed(draft: Draft, path: str) -> None:
    draft.disown(path)
    draft.see(path, ABSENT)


def remove_leftovers(draft: Draft, entry: EntryId, standing: Standing) -> None:
    """Remove what the entry put there and nobody declares any more, children before parents."""
    held: list[str] = []
    for path in draft.leftovers(entry):
        owned = draft.paths[path]
        if owned.spec.keep or owned.found:
            draft.disown(path)
            continue
        if any(below.startswith(f"{path}/") for below in held):
            held.append(path)
            continue
        if _is_unsure(owned) and not draft.busy(_resource(path)):
            seen = draft.seen.get(path)
            if seen is None:
                _await_look(draft, path, standing)
                continue
            if seen.digest != owned.spec.digest:
                draft.disown(path)
                continue
        under_way = draft.attempt(entry, effects.RemovePath(entry=entry, path=path))
        standing.blame(path, draft.retries.get(_resource(path)), under_way=under_way)
        held.append(path)
