"""What an external offers: values from outside the fleet, which no machine gives."""

from keyplane.model.fleet import External
from keyplane.model.module import Access, ExportVariant, Lifecycle, Scope
from keyplane.planner import offers, refs, terms, types
from keyplane.planner.draft import Draft, Export, Offer
from keyplane.planner.rows import did_you_mean


def of_external(draft: Draft, external: External) -> Offer | None:
    """The offer; rows are of the fleet's file."""
    file, path = draft.fleet.file, f"externals.{external.name}"
    interface = draft.interfaces.get(external.interface)
    if interface is None:
        if draft.is_interface_dropped(external.interface):
            return None
        draft.rows.add(
            "unknown-interface",
            file,
            f"{path}.interface",
            f"external {external.name}: there is no interface `{external.interface}`",
            *did_you_mean(external.interface, draft.interfaces, "interfaces"),
        )
        return None
    exports: dict[str, Export] = {}
    for name, kind in sorted(interface.exports.items()):
        at = f"{path}.exports.{name}"
        variant = next((item for item in external.exports.get(name, ()) if not item.when), None)
        if variant is None and draft.is_dropped(file, "externals", external.name, "exports", name):
            continue
        if variant is None:
            offers.missing(draft.rows, file, at, f"external {external.name}", interface)
            continue
        value, wrong = _read(draft, external, variant, at)
        found = types.of_tree(draft, None, value, interface.name)
        if variant.lifecycle is Lifecycle.STATIC and not types.fits(found, kind):
            wrong = True
            message = offers.ill_typed(f"{name} of external {external.name}", kind, value)
            draft.rows.add("wrong-type", file, at, *message)
        exports[name] = Export(
            name=name,
            type=kind,
            lifecycle=variant.lifecycle,
            access=variant.access or Access.ROUTABLE,
            value=value,
            fact=variant.fact,
            wrong=wrong,
        )
    for name in sorted(external.exports.keys() - interface.exports.keys()):
        if draft.is_interface_dropped(interface.name, "exports", name):
            continue
        offers.undeclared(draft.rows, file, f"{path}.exports.{name}", name, interface)
    return Offer(
        id=f"external:{external.name}",
        provide=interface.name,
        interface=interface.name,
        scope=Scope.MESH,
        exports=exports,
        assignment=None,
        external=external,
    )


def _read(
    draft: Draft, external: External, variant: ExportVariant, path: str
) -> tuple[terms.Tree, bool]:
    """The value with its references read, and whether something is wrong with it."""
    rows: list[tuple[str, tuple[str, ...]]] = []
    value = terms.read_tree(variant.value, path, lambda _at, message: rows.append((message, ())))
    for reference in terms.references_in(value):
        problem = refs.external_problem(draft, reference, external.interface)
        if problem is not None:
            rows.append(problem)
    if variant.lifecycle is Lifecycle.PROBED:
        rows.append(
            (
                f"external {external.name} is on no machine, so fact `{variant.fact}` is nobody's",
                ('give the value itself, with lifecycle = "static"',),
            )
        )
    if variant.lifecycle is Lifecycle.DYNAMIC:
        rows.append(
            (
                f"external {external.name} is on no machine, so no agent reads its `source`",
                (
                    'give the value itself, with lifecycle = "static": an edit of it is a restart',
                    "or let an instance of the fleet say it, and bind its users to that",
                ),
            )
        )
    for message, ways in rows:
        draft.rows.add("unknown-reference", draft.fleet.file, path, message, *ways)
    return value, bool(rows)
