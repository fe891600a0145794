"""Names inside a role that have to be there: artifacts, volumes, listens, units, buckets."""

from collections.abc import Collection
from dataclasses import dataclass

from keyplane.documents.trees import is_table
from keyplane.model.module import UnitKind
from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.rows import did_you_mean
from keyplane.planner.terms import Tree


@dataclass(frozen=True, slots=True)
class _Expecting:
    """Reports what one assignment names and is not there."""

    draft: Draft
    assignment: Assignment

    def __call__(
        self, path: str, name: str, known: Collection[str], what: str, *tables: tuple[str, ...]
    ) -> None:
        """`tables` is where the module declares such names."""
        file = self.assignment.module.file
        dropped = any(self.draft.is_dropped(file, *table, name) for table in tables)
        if name not in known and not dropped:
            self.draft.rows.add(
                "unknown-reference",
                self.assignment.id,
                path,
                f"{path} of {self.assignment.id} names `{name}`, which is none of the {what}",
                *did_you_mean(name, known, what),
            )


_TABLES = {
    "archive": (("build", "archives"),),
    "bundle": (("build", "bundles"),),
    "nix": (("build", "nix"),),
    "image": (("build", "images"), ("build", "upstream")),
}
"""Where a module declares what a unit's field names."""


def artifacts(assignment: Assignment, field: str) -> Collection[str]:
    """The artifacts that a unit's field may name."""
    build = assignment.module.build
    match field:
        case "archive":
            return build.archives
        case "bundle":
            return build.bundles
        case "nix":
            return build.nix
        case _:
            return {**build.images, **build.upstream}


def check(draft: Draft, assignment: Assignment) -> None:
    expect = _Expecting(draft, assignment)
    _check_units(assignment, expect)
    role = assignment.role
    for name, resource in assignment.compiled.resources.items():
        if resource["type"] == "archive" and isinstance(resource.get("archive"), str):
            path = f"resources.{name}.archive"
            expect(
                path,
                resource["archive"],
                artifacts(assignment, "archive"),
                "archives of [build]",
                *_TABLES["archive"],
            )
    accounts = _accounts(draft, assignment)
    for name, secret in sorted(role.secrets.items()):
        if secret.owner is not None:
            path = f"secrets.{name}.owner"
            expect(path, secret.owner, accounts, "accounts of the module")
    if role.zone is not None:
        listens = ("roles", assignment.role_name, "listens")
        expect("zone.listen", role.zone.listen, role.listens, "listens of the role", listens)
    for read in role.reads:
        _check_read(draft, read, expect)
    _check_toolchains(draft, assignment)


def _check_units(assignment: Assignment, expect: _Expecting) -> None:
    role, own = assignment.role, ("roles", assignment.role_name)
    containers = [unit.name for unit in assignment.body.units if unit.kind is UnitKind.CONTAINER]
    for unit in assignment.body.units:
        path = f"units.{unit.name}"
        for field in ("archive", "bundle", "nix", "image"):
            named = unit.fields.get(field)
            if isinstance(named, str):
                known = artifacts(assignment, field)
                what = "images of [build]" if field == "image" else f"{field} artifacts of [build]"
                expect(f"{path}.{field}", named, known, what, *_TABLES[field])
        for at, source in sorted(_table(unit.fields.get("mounts")).items()):
            if isinstance(source, str) and source.startswith("volume:"):
                expect(
                    f"{path}.mounts.{at}",
                    source.removeprefix("volume:"),
                    role.volumes,
                    "volumes of the role",
                    (*own, "volumes"),
                )
        for listen, port in sorted(_table(unit.fields.get("publish")).items()):
            if not (isinstance(port, str) and ":" in port):
                expect(
                    f"{path}.publish.{listen}",
                    listen,
                    role.listens,
                    "listens of the role",
                    (*own, "listens"),
                )
        stopped = unit.fields.get("whileStopped")
        if isinstance(stopped, str):
            expect(
                f"{path}.whileStopped",
                stopped,
                containers,
                "containers of the role",
                (*own, "units"),
            )


def _check_read(draft: Draft, read: str, expect: _Expecting) -> None:
    """`INSTANCE:ROLE/BUCKET` of any instance of the fleet, placed or not."""
    holder, _, bucket = read.partition("/")
    instance_name, _, role_name = holder.partition(":")
    instance = draft.instances.get(instance_name)
    module = draft.request.documents.modules.get(instance.module) if instance else None
    role = module.roles.get(role_name) if module else None
    known = [
        f"{name}:{other}/{item}"
        for name, said in draft.instances.items()
        for other, its in (
            draft.request.documents.modules[said.module].roles.items()
            if said.module in draft.request.documents.modules
            else ()
        )
        for item in its.state
    ]
    dropped = (
        draft.is_dropped(draft.fleet.file, "instances", instance_name)
        if module is None
        else draft.is_dropped(module.file, "roles", role_name, "state", bucket)
    )
    if (role is None or bucket not in role.state) and not dropped:
        expect("reads", read, known, "buckets of the fleet")


def _check_toolchains(draft: Draft, assignment: Assignment) -> None:
    modules = draft.request.documents.modules
    for name, bundle in sorted(assignment.module.build.bundles.items()):
        toolchain = bundle.get("toolchain")
        if not isinstance(toolchain, str):
            continue
        known = [
            f"{other}/{artifact}"
            for other, module in modules.items()
            for kind in (
                module.build.archives,
                module.build.images,
                module.build.upstream,
                module.build.bundles,
                module.build.nix,
            )
            for artifact in kind
        ]
        owner, _, artifact = toolchain.partition("/")
        dropped = owner in draft.request.documents.broken or any(
            draft.is_dropped(module.file, *table, artifact)
            for module in modules.values()
            if module.name == owner
            for tables in _TABLES.values()
            for table in tables
        )
        if toolchain not in known and not dropped:
            draft.rows.add(
                "unknown-reference",
                assignment.module.file,
                f"build.bundles.{name}.toolchain",
                f"toolchain `{toolchain}` is no artifact of a module",
                *did_you_mean(toolchain, known, "artifacts"),
            )


def _accounts(draft: Draft, assignment: Assignment) -> list[str]:
    """Accounts go by the resource's name and by the account's own; also what could not be read."""
    known: list[str] = []
    for role in assignment.module.roles.values():
        for name, resource in role.resources.items():
            if resource.type == "account":
                known.append(name)
                if isinstance(resource.fields.get("name"), str):
                    known.append(resource.fields["name"])
    dropped = draft.request.documents.dropped.get(assignment.module.file, {})
    for place, written in dropped.items():
        if place[2:3] == ("resources",) and len(place) == 4:
            known.append(place[3])
            name = written.get("name") if is_table(written) else None
            if isinstance(name, str):
                known.append(name)
    return known


def _table(value: Tree) -> dict[str, Tree]:
    return value if is_table(value) else {}
