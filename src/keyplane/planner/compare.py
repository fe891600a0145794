"""Round compare: what it takes to get from one plan to another."""

from collections.abc import Iterable, Mapping
from itertools import filterfalse

from keyplane.model.diagnostic import Diagnostic, Severity
from keyplane.model.names import split_entry
from keyplane.model.plan import Diff, Entry, Move, Plan, Retag
from keyplane.planner import causes
from keyplane.planner.request import Digests

_LIVE_FIELDS = (
    "dynamic", "health", "reload", "restart", "stop_timeout", "handover", "replaces",
    "stop_first", "secret_reactions",
)  # fmt: skip
_LIVE_EXTRAS = (
    "publishes", "grants", "credentials", "secret_options", "state", "reads", "zone", "seats",
)  # fmt: skip


_NO_DIGESTS: Digests = {}
_NONE: Mapping[str, str] = {}


def diff(
    old: Plan,
    new: Plan,
    *,
    old_digests: Digests = _NO_DIGESTS,
    new_digests: Digests = _NO_DIGESTS,
) -> Diff:
    """The difference of two plans.

    The digests, of two `PlanResult`s, save looking into entries that differ in nothing. Without
    them nothing is believed of a plan that it does not show: it may have been edited.
    """
    before, after = old.entries, new.entries
    names = sorted(after)
    if old_digests and new_digests:
        others = _others(old, new, old_digests, new_digests)
    else:
        others = [name for name in names if before.get(name) is not after[name]]
    moved, come, same = causes.sort_out(others, old, new)
    reload: list[str] = []
    rewire: list[str] = []
    for name in same:
        was, entry = before[name], after[name]
        if _configs(was) != _configs(entry):
            reload.append(name)
        elif _live(was) != _live(entry):
            rewire.append(name)
    gone: list[str] = []
    if len(before) > len(after) - len(come):
        gone = sorted(name for name in before if name not in after)
    units, why = causes.find(moved, old, new, [*come, *gone])
    is_all = not (come or reload or rewire)
    touched = units if is_all else {*units, *come, *reload, *rewire}
    return Diff(
        deactivate=sorted([*gone, *moved.names]) if gone else moved.names,
        activate=sorted([*come, *moved.names]) if come else [*moved.names],
        reload=reload,
        rewire=rewire,
        untouched=list(filterfalse(touched.__contains__, names)) if touched else names,
        moves=_moves(gone, come),
        retags=_retags(old, new),
        units=units,
        why=why,
    )


def _others(old: Plan, new: Plan, old_digests: Digests, new_digests: Digests) -> list[str]:
    """The entries of the new plan of which the digests do not say that the old one has the same."""
    found: list[str] = []
    if old.generation != new.generation:
        for role, digests in new_digests.items():
            before = old_digests.get(role, _NONE)
            if before is not digests:
                found += [name for name, one in digests.items() if before.get(name) != one]
    return sorted(found)


def _configs(entry: Entry) -> list[object]:
    """All that a reload takes up: files, and the templates of files with dynamic values."""
    found: list[object] = []
    for name, unit in entry.units.items():
        found.append((name, unit.config_data))
        for path, contract in unit.dynamic.items():
            if "/" in path:
                found.append((name, path, contract.template))
    return found


def _live(entry: Entry) -> list[object]:
    found: list[object] = [
        (name, [getattr(unit, field) for field in _LIVE_FIELDS])
        for name, unit in entry.units.items()
    ]
    found.extend(getattr(entry, field) for field in _LIVE_EXTRAS)
    return found


def _moves(gone: Iterable[str], come: Iterable[str]) -> list[Move]:
    """The entries of one role that left a machine, paired with those that came to another."""
    left: dict[str, list[str]] = {}
    for entry in gone:
        instance, role, machine = split_entry(entry)
        left.setdefault(f"{instance}:{role}", []).append(machine)
    came: dict[str, list[str]] = {}
    for entry in come:
        instance, role, machine = split_entry(entry)
        came.setdefault(f"{instance}:{role}", []).append(machine)
    return [
        Move(entry=role, from_=source, to=target)
        for role, sources in sorted(left.items())
        for source, target in zip(sources, came.get(role, ()), strict=False)
    ]


def _retags(old: Plan, new: Plan) -> list[Retag]:
    found: list[Retag] = []
    for name, export in sorted(new.exports.items()):
        was = old.exports.get(name)
        if was is None or was is export:
            continue
        before, after = f"{was.lifecycle}/{was.access}", f"{export.lifecycle}/{export.access}"
        if before != after:
            found.append(Retag(export=name, from_=before, to=after, consumers=export.readers))
    return found


def by_cascade(diff: Diff) -> int:
    """How many entries moved for no other cause than that a provider's key moved."""
    return sum(
        all(reason.startswith("dependency ") for reason in reasons) for reasons in diff.why.values()
    )


def retag_rows(diff: Diff) -> list[Diagnostic]:
    """A warning for each retag, naming who reads the export."""
    return [
        Diagnostic(
            code="retag",
            severity=Severity.WARNING,
            subject=retag.export,
            message=f"{retag.export} is retagged from {retag.from_} to {retag.to}: a change to it "
            f"now costs its readers otherwise ({', '.join(retag.consumers)})",
            resolution=("see that each reader can live with it before you apply",),
        )
        for retag in diff.retags
    ]
