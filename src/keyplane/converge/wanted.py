"""A declaration, as it is compared: what each entry wants at which path, and in which order."""

from collections.abc import Mapping

from keyplane.converge.state import Kind, PathSpec, Wanted
from keyplane.model import reaction
from keyplane.model.declaration import Declaration, DeclaredEntry, DeclaredUnit
from keyplane.model.names import Digest, EntryId, UnitName

CONFIG_MODE = "0400"
"""What is written for a unit belongs to the account that reads it, and to no other: a file of
configData may hold what a neighbour should not read."""


def of_declaration(declaration: Declaration | None) -> Mapping[EntryId, Wanted]:
    if declaration is None:
        return {}
    return {
        entry: of_entry(entry, declaration.entries[entry]) for entry in sorted(declaration.entries)
    }


def of_entry(entry: EntryId, declared: DeclaredEntry) -> Wanted:
    units = sorted(declared.units.items(), key=lambda item: (not item[1].run_once, item[0]))
    paths: dict[str, PathSpec] = {}
    for path, directory in declared.directories.items():
        paths[path] = PathSpec(
            kind=Kind.DIRECTORY,
            mode=directory.mode,
            owner=directory.owner,
            group=directory.group,
            keep=directory.keep,
        )
    if any(each.published for each in declared.publishes.values()):
        paths[reaction.publish_folder(entry)] = PathSpec(kind=Kind.DIRECTORY, mode="0755")
    for path, archive in declared.archives.items():
        paths[path] = PathSpec(kind=Kind.ARCHIVE, digest=archive.digest)
    for path, file in declared.files.items():
        paths[path] = PathSpec(
            kind=Kind.FILE,
            digest=file.digest,
            mode=file.mode,
            owner=file.owner,
            group=file.group,
            adopt=file.adopt,
        )
    for _, unit in units:
        for path, config in unit.config.items():
            mode = config.mode or CONFIG_MODE
            paths[path] = PathSpec(kind=Kind.FILE, digest=config.digest, mode=mode, owner=unit.user)
    return Wanted(
        declared=declared,
        paths={path: paths[path] for path in sorted(paths)},
        units=tuple(units),
        tcp_ports=_ports(declared, udp=False),
        udp_ports=_ports(declared, udp=True),
        dynamic_paths=tuple(
            path for name, unit in units if unit.dynamic for path in _dynamic(entry, name, unit)
        ),
    )


def _ports(declared: DeclaredEntry, *, udp: bool) -> frozenset[int]:
    listens = declared.listens.items()
    return frozenset(number for name, number in listens if (name in declared.udp) is udp)


def _dynamic(entry: EntryId, name: UnitName, unit: DeclaredUnit) -> tuple[str, ...]:
    written = sorted(path for path in unit.dynamic if path.startswith("/"))
    return (*written, values_path(entry, name))


def values_path(entry: EntryId, unit: UnitName) -> str:
    """The file of a unit's values, in a directory of its own: a process sees whole directories."""
    return f"{reaction.run_folder(entry)}/units/{unit}/values.json"


def fault(declaration: Declaration) -> str | None:
    """Why nobody could carry it out as it stands."""
    owners: dict[str, EntryId] = {}
    for entry in sorted(declaration.entries):
        wanted = of_entry(entry, declaration.entries[entry])
        for path in (*wanted.paths, *wanted.dynamic_paths):
            if path in owners:
                return f"{path} is declared by {owners[path]} and by {entry}"
            owners[path] = entry
        for path, spec in wanted.paths.items():
            if spec.kind is Kind.FILE and spec.digest not in declaration.contents:
                return f"the content of {path} of {entry} is not in the declaration"
    return None


def owners(wanted: Mapping[EntryId, Wanted]) -> Mapping[str, EntryId]:
    return {
        path: entry for entry, each in wanted.items() for path in (*each.paths, *each.dynamic_paths)
    }


def archives(wanted: Wanted) -> tuple[Digest, ...]:
    """Everything that must be fetched before the entry can be as declared."""
    found = {unit.archive for _, unit in wanted.units if unit.archive is not None}
    found.update(
        spec.digest
        for spec in wanted.paths.values()
        if spec.kind is Kind.ARCHIVE and spec.digest is not None
    )
    return tuple(sorted(found))
