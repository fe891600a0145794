"""Round evaluate: each role once for each instance that has it, on references.

A plain role has its body in the document; a role with a function is asked for it. Then all that
the role says by itself is judged: its references, requests, reactions and offers.
"""

from collections.abc import Iterable, Mapping

from keyplane.documents.evaluation import EvaluationRequest
from keyplane.documents.trees import is_table
from keyplane.model.module import Body, Reach
from keyplane.planner import clear, compiled, names, offers, refs, terms, types
from keyplane.planner.compiled import CompiledBody
from keyplane.planner.draft import Assignment, Draft, SlotSpec
from keyplane.planner.rows import did_you_mean, listed

SPENT_MAX = 2
"""A function that came to a limit so often is not called for others: each time may cost seconds, and
one instance with odd settings is no reason to say nothing of all others."""
SPENT_ALL_MAX = 8
"""The same of all functions together: twenty seconds, after which nobody waits for four modules more."""


def prepare(draft: Draft, assignment: Assignment) -> None:
    """Evaluate an assignment and judge what does not depend on placement."""
    assignment.compiled = draft.compile_role(assignment.role)
    assignment.dropped = {}
    body = assignment.role.body
    if assignment.role.impl:
        body = evaluate(draft, assignment, {})
    assignment.failed = body is None
    assignment.body = draft.compile_body(assignment.role, body or Body())
    if not draft.is_clean(assignment):
        before = len(draft.rows.found)
        _check_references(draft, assignment)
        _check_reactions(draft, assignment)
        clear.check_body(draft, assignment)
        if len(draft.rows.found) == before:
            draft.hold_clean(assignment)
    _check_requests(draft, assignment)
    names.check(draft, assignment)
    clear.check_settings(draft, assignment)
    assignment.offers = offers.of_assignment(draft, assignment)
    chosen = [
        tree
        for offer in assignment.offers
        for export in offer.exports.values()
        for tree in (export.value, export.source)
    ]
    assignment.export_slots = frozenset(
        slot for tree in chosen for slot in compiled.slots_asked(tree)
    )
    assignment.slots = _slots(draft, assignment, chosen)


def evaluate(
    draft: Draft, assignment: Assignment, members: Mapping[str, tuple[str, ...]]
) -> Body | None:
    """Call the role's function; None where there is nothing to call it with, or it failed.

    Calls come in one order for equal documents, so what is not called is the same for those.
    """
    function = assignment.module.name, assignment.role_name
    if not assignment.sound:
        return None
    why = _spent(draft, function)
    if why:
        draft.rows.add(
            "starlark",
            assignment.module.file,
            f"roles.{assignment.role_name}",
            f"the function of {assignment.role_name} was not called for {assignment.id}, as {why}",
            "mend it for those first",
        )
        return None
    sets = {
        name: members.get(name, ())
        for name, slot in sorted(assignment.role.uses.items())
        if slot.reach is Reach.ALL
    }
    result = draft.request.evaluate(
        EvaluationRequest(
            instance=assignment.instance,
            module=assignment.module,
            role=assignment.role_name,
            settings=assignment.settings,
            members=sets,
            interfaces=draft.interfaces,
        )
    )
    if result.spent:
        draft.spent.setdefault(function, []).append(assignment.id)
    draft.rows.found.extend(result.diagnostics)
    assignment.dropped.update(result.dropped)
    for path, content in result.shipped.items():
        draft.shipped[assignment.module.name, path] = content
    return result.body


def _spent(draft: Draft, function: tuple[str, str]) -> str:
    """Why a function is not called any more; empty as long as it is."""
    own = draft.spent.get(function, [])
    if len(own) >= SPENT_MAX:
        return f"it came to a limit for {' and '.join(own)}"
    every = [each for ids in draft.spent.values() for each in ids]
    if len(every) >= SPENT_ALL_MAX:
        return f"those of others came to a limit for {', '.join(every[:-1])} and {every[-1]}"
    return ""


def check_body(draft: Draft, assignment: Assignment, body: CompiledBody) -> None:
    """Judge the references of a body that a function made for one set of members."""
    for path, tree in compiled.places(assignment.compiled, body):
        _report(draft, assignment, path, tree, None)
    for path, message in body.malformed:
        draft.rows.add("unknown-reference", assignment.id, path, message)


def _check_references(draft: Draft, assignment: Assignment) -> None:
    check_body(draft, assignment, assignment.body)
    for path, message in assignment.compiled.malformed:
        draft.rows.add("unknown-reference", assignment.id, path, message)
    for provide, said in assignment.body.exports.items():
        owner = assignment.role.provides.get(provide)
        for export, variants in said.items():
            path = f"provides.{provide}.exports.{export}"
            for variant in variants:
                for at, tree in (("value", variant.value), ("source", variant.source)):
                    _report(
                        draft,
                        assignment,
                        f"{path}.{at}",
                        tree,
                        owner.interface if owner is not None and at == "value" else None,
                    )


def _report(
    draft: Draft, assignment: Assignment, path: str, tree: terms.Tree, export_of: str | None
) -> None:
    for at, message, ways in refs.problems(draft, assignment, tree, path, export_of):
        if draft.rows.is_full(assignment.id):
            return
        draft.rows.add(
            "unknown-reference", assignment.id, at, f"{message} (in {at} of {assignment.id})", *ways
        )


def _check_requests(draft: Draft, assignment: Assignment) -> None:
    for name, slot in sorted(assignment.role.uses.items()):
        interface = draft.interfaces.get(slot.interface)
        if interface is None:
            continue
        request, path = assignment.compiled.requests[name], f"uses.{name}.request"
        for field, wanted in sorted(interface.request.items()):
            at = f"{path}.{field}"
            if field not in request and assignment.is_dropped(
                draft, "uses", name, "request", field
            ):
                continue
            if field not in request:
                draft.rows.add(
                    "request-invalid",
                    assignment.id,
                    at,
                    f"{path} of {assignment.id} does not give `{field}`, which "
                    f"`{interface.name}` asks for",
                    f"give {field} = … (type {wanted.value})",
                )
                continue
            found = types.of_tree(draft, assignment, request[field], None)
            if not types.fits(found, wanted) or is_table(request[field]):
                draft.rows.add(
                    "request-invalid",
                    assignment.id,
                    at,
                    f"{at} of {assignment.id} is of type {found.value if found else 'table'}; "
                    f"`{interface.name}` asks for {wanted.value}",
                    f"give a value of type {wanted.value}",
                )
        for field in sorted(request.keys() - interface.request.keys()):
            if draft.is_interface_dropped(interface.name, "request", field):
                continue
            draft.rows.add(
                "request-invalid",
                assignment.id,
                f"{path}.{field}",
                f"`{interface.name}` has no request field `{field}`",
                *did_you_mean(field, interface.request, f"request fields of `{interface.name}`"),
            )


def _check_reactions(draft: Draft, assignment: Assignment) -> None:
    role = assignment.role
    for path in sorted(role.reactions):
        slot, _, export = path.partition(".")
        if slot == "secrets" and slot not in role.uses:
            known: Iterable[str] = role.secrets
            what, name = "secrets of the role", export
            dropped = assignment.is_dropped(draft, "secrets", export)
        elif slot not in role.uses:
            known, what, name = role.uses, "slots of the role", slot
            dropped = assignment.is_dropped(draft, "uses", slot)
        else:
            interface = draft.interfaces.get(role.uses[slot].interface)
            if interface is None:
                continue
            known, what, name = interface.exports, f"exports of `{interface.name}`", export
            dropped = draft.is_interface_dropped(interface.name, "exports", export)
        if name not in known and not dropped:
            draft.rows.add(
                "reaction-unknown",
                assignment.id,
                f"reactions.{path}",
                f"reactions.{path} of {assignment.id} names nothing: `{name}` is none of the "
                f"{what} ({listed(known)})",
                *did_you_mean(name, known, what),
            )


def _slots(
    draft: Draft, assignment: Assignment, exports: Iterable[terms.Tree]
) -> tuple[SlotSpec, ...]:
    reads: dict[str, set[str]] = {}
    trees = [tree for _, tree in compiled.places(assignment.compiled, assignment.body)]
    for tree in (*trees, *exports):
        for slot, export in compiled.slots_read(tree):
            reads.setdefault(slot, set()).add(export)
    slots: list[SlotSpec] = []
    for name, uses in sorted(assignment.role.uses.items()):
        if _known(draft, assignment, uses.interface, f"uses.{name}.interface"):
            exports_known = draft.interfaces[uses.interface].exports
            slots.append(
                SlotSpec(
                    name=name,
                    index=len(slots),
                    interface=uses.interface,
                    reach=uses.reach,
                    reads=frozenset(reads.get(name, set()) & exports_known.keys()),
                    follow=uses.follow,
                    count=uses.count,
                )
            )
    for interface in sorted(set(assignment.role.requires)):
        if _known(draft, assignment, interface, "requires"):
            slots.append(
                SlotSpec(
                    name=interface,
                    index=len(slots),
                    interface=interface,
                    reach=Reach.ONE,
                    reads=frozenset(),
                    presence=True,
                )
            )
    return tuple(slots)


def _known(draft: Draft, assignment: Assignment, interface: str, path: str) -> bool:
    if interface in draft.interfaces:
        return True
    if draft.is_interface_dropped(interface):
        return False
    draft.rows.add(
        "unknown-interface",
        assignment.id,
        path,
        f"{path} of {assignment.id}: there is no interface `{interface}`",
        *did_you_mean(interface, draft.interfaces, "interfaces"),
    )
    return False
