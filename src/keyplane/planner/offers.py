"""What an assignment offers: which variant of each export counts, and what is wrong with it."""

from collections.abc import Mapping

from keyplane.documents.references import Reference
from keyplane.model.interface import Interface, ValueType
from keyplane.model.module import Access, Json, Lifecycle, Provide, Scope
from keyplane.planner import settings, terms, types
from keyplane.planner.compiled import CompiledVariant
from keyplane.planner.draft import Assignment, Draft, Export, Offer
from keyplane.planner.rows import Rows, did_you_mean


def of_assignment(draft: Draft, assignment: Assignment) -> tuple[Offer, ...]:
    """The offers of a role, with rows for exports that are missing, undeclared or ill-typed."""
    offers: list[Offer] = []
    for name, provide in sorted(assignment.role.provides.items()):
        interface = draft.interfaces.get(provide.interface)
        if interface is None:
            if draft.is_interface_dropped(provide.interface):
                continue
            draft.rows.add(
                "unknown-interface",
                assignment.id,
                f"provides.{name}.interface",
                f"provides.{name} of {assignment.id}: there is no interface `{provide.interface}`",
                *did_you_mean(provide.interface, draft.interfaces, "interfaces"),
            )
            continue
        offers.append(
            Offer(
                id=assignment.id,
                provide=name,
                interface=interface.name,
                scope=provide.scope,
                exports=_Exporting(draft, assignment, name, interface).exports(provide),
                assignment=assignment,
                follow=provide.follow,
                credentials=provide.credentials,
            )
        )
    return tuple(offers)


class _Exporting:
    """The exports of one provide of an assignment."""

    def __init__(
        self, draft: Draft, assignment: Assignment, name: str, interface: Interface
    ) -> None:
        self._draft = draft
        self._assignment = assignment
        self._interface = interface
        self._path = f"provides.{name}"
        self._name = name

    def exports(self, provide: Provide) -> Mapping[str, Export]:
        assignment = self._assignment
        said = assignment.body.exports.get(self._name, {})
        exports: dict[str, Export] = {}
        if assignment.failed:
            return exports
        by_scope = Access.ROUTABLE if provide.scope is Scope.MESH else Access.MACHINE_LOCAL
        for name, kind in sorted(self._interface.exports.items()):
            path = f"{self._path}.exports.{name}"
            variant = self._choose(said.get(name, ()), path)
            if variant is None and assignment.is_dropped(
                self._draft, "provides", self._name, "exports", name
            ):
                continue
            if variant is None:
                owner = f"{self._path} of {assignment.id}"
                missing(self._draft.rows, assignment.id, path, owner, self._interface)
                continue
            exports[name] = Export(
                name=name,
                type=kind,
                lifecycle=variant.authored.lifecycle,
                access=variant.authored.access or by_scope,
                value=variant.value,
                fact=variant.authored.fact,
                source=variant.source,
                wrong=self._is_wrong(variant, kind, path),
            )
        for name in sorted(said.keys() - self._interface.exports.keys()):
            if self._draft.is_interface_dropped(self._interface.name, "exports", name):
                continue
            path = f"{self._path}.exports.{name}"
            undeclared(self._draft.rows, assignment.id, path, name, self._interface)
        return exports

    def _choose(self, variants: tuple[CompiledVariant, ...], path: str) -> CompiledVariant | None:
        """The first variant whose `when` fits the settings."""
        assignment = self._assignment
        for variant in variants:
            for name in sorted(variant.authored.when.keys() - assignment.role.settings.keys()):
                if assignment.is_dropped(self._draft, "settings", name):
                    continue
                self._draft.rows.add(
                    "unknown-setting",
                    assignment.id,
                    f"{path}.when.{name}",
                    f"{path} of {assignment.id} asks for setting `{name}`, which the role has not",
                    *did_you_mean(name, assignment.role.settings, "settings of the role"),
                )
        return next(
            (one for one in variants if _fits(one.authored.when, assignment.settings)), None
        )

    def _is_wrong(self, variant: CompiledVariant, kind: ValueType, path: str) -> bool:
        assignment = self._assignment
        if variant.authored.lifecycle is not Lifecycle.STATIC:
            return False
        found = types.of_tree(self._draft, assignment, variant.value, self._interface.name)
        if not types.fits(found, kind):
            message = ill_typed(f"{path} of {assignment.id}", kind, variant.value)
            self._draft.rows.add("wrong-type", assignment.id, f"{path}.value", *message)
            return True
        if not assignment.unitless:
            return False
        wrong = False
        for at, parts in terms.texts_in(variant.value, f"{path}.value"):
            for part in parts:
                if isinstance(part, Reference) and part.root == "machine":
                    wrong = True
                    self._draft.rows.add(
                        "unknown-reference",
                        assignment.id,
                        at,
                        f"{part} names nothing: {assignment.id} has no units, so it is on no "
                        "machine in particular",
                        "write the value without the machine, or give the role a unit",
                    )
        return wrong


def _fits(when: Mapping[str, Json], given: Mapping[str, Json]) -> bool:
    return all(name in given and settings.same(given[name], value) for name, value in when.items())


def missing(rows: Rows, subject: str, path: str, owner: str, interface: Interface) -> None:
    """`path` ends with the export."""
    export = path.rpartition(".")[2]
    rows.add(
        "export-missing",
        subject,
        path,
        f"{owner} does not give export `{export}`, which its interface `{interface.name}` declares",
        f"give `{export}`, with a variant that fits these settings",
    )


def undeclared(rows: Rows, subject: str, path: str, export: str, interface: Interface) -> None:
    rows.add(
        "export-undeclared",
        subject,
        path,
        f"interface `{interface.name}` declares no export `{export}`",
        *did_you_mean(export, interface.exports, f"exports of `{interface.name}`"),
    )


def ill_typed(what: str, kind: ValueType, value: terms.Tree) -> tuple[str, str]:
    """The message and the resolution for a value of another type than its export."""
    shown = (
        terms.written(value) if terms.is_text(value) else settings.show(terms.written_tree(value))
    )
    return (
        f"{what} is {shown}; the interface says that it is of type {kind.value}",
        f"give a value of type {kind.value}, or change the interface",
    )
