"""What a declaration says of a unit, as those read it who watch what is done with it."""

from collections.abc import Callable

from keyplane.converge.state import Ledger
from keyplane.model.declaration import Declaration, DeclaredUnit
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.testing.simulation.host import ProcessKey


def allows_stop(
    declaration: Declaration | None, key: ProcessKey, is_well: Callable[[ProcessKey], bool]
) -> bool:
    """Whether a process may be stopped by it: what takes over from it, if anything, is well."""
    entry, unit, digest = key
    declared = None if declaration is None else declaration.entries.get(entry)
    if declared is None or declared.save is not None or declared.take is not None:
        return True
    same = declared.units.get(unit)
    if same is None:
        found = [(name, each) for name, each in declared.units.items() if each.replaces == unit]
    elif same.digest == digest:
        return False
    else:
        found = [(unit, same)] if same.start_first and not same.run_once else []
    return not found or any(is_well((entry, name, each.digest)) for name, each in found)


def took_ports_round(
    declaration: Declaration | None, ledger: Ledger | None, entry: EntryId
) -> bool:
    """Whether it is to have a port that another had, and another one that it had itself."""
    if declaration is None or ledger is None:
        return False
    now = {each: set(it.listens.values()) for each, it in declaration.entries.items()}
    before = {
        each: {port for unit in it.units.values() for port in unit.ports}
        for each, it in ledger.entries.items()
    }
    return any(before.get(entry, set()) & now[each] for each in now if each != entry) and any(
        now.get(entry, set()) & before[each] for each in before if each != entry
    )


def keeps(declaration: Declaration | None, key: ProcessKey) -> bool:
    """Whether that process is declared, and nothing is to be done with its volumes."""
    entry, unit, digest = key
    declared = None if declaration is None else declaration.entries.get(entry)
    if declared is None or declared.save is not None or declared.take is not None:
        return False
    return digest_of(declaration, entry, unit) == digest


def starts_first(declaration: Declaration | None, entry: EntryId, unit: UnitName) -> bool:
    found = unit_of(declaration, entry, unit)
    return found is not None and found.start_first


def has_check(declaration: Declaration | None, key: ProcessKey) -> bool:
    found = unit_of(declaration, key[0], key[1])
    return found is not None and found.health is not None


def digest_of(declaration: Declaration | None, entry: EntryId, unit: UnitName) -> Digest | None:
    found = unit_of(declaration, entry, unit)
    return None if found is None else found.digest


def unit_of(declaration: Declaration | None, entry: EntryId, unit: UnitName) -> DeclaredUnit | None:
    declared = None if declaration is None else declaration.entries.get(entry)
    return None if declared is None else declared.units.get(unit)


def names(declaration: Declaration, archive: Digest) -> bool:
    return any(
        archive in (each.digest for each in entry.archives.values())
        or archive in (each.archive for each in entry.units.values())
        for entry in declaration.entries.values()
    )
