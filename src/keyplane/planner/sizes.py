"""How much text a plan holds, and the most that it may.

A small document can ask for any amount of it: one long text on each of many machines. How many
entries and edges there may be is the business of `room`.
"""

from collections.abc import Iterable
from dataclasses import replace

from keyplane.documents.trees import is_list, is_table
from keyplane.planner import notes, terms
from keyplane.planner.draft import Draft
from keyplane.planner.program import Contract, Families, Family, Gap, Program
from keyplane.planner.rows import Rows
from keyplane.planner.terms import Tree

ROLE_MAX = 128 << 20
"""Characters in all entries of a role: a kilobyte for each of a hundred thousand."""
PLAN_MAX = 512 << 20
"""Characters in all entries. A plan takes some three times as much memory while it is made."""


def refuse(draft: Draft, families: list[Family]) -> bool:
    """Whether the entries of a role hold too much: they stay, with nothing to run in them."""
    if not families:
        return False
    role = families[0].assignment.id
    size = draft.texts[role] = sum(_of_family(family) for family in families)
    if size <= ROLE_MAX:
        return False
    _refuse(
        draft.rows, families, f"{size} characters of text, more than the {ROLE_MAX} that a role"
    )
    draft.texts[role] = 0
    return True


def refuse_all(draft: Draft, every: Families) -> list[str]:
    """The roles that are too much for the plan after those before them."""
    total = 0
    refused: list[str] = []
    for role, families in every.items():
        size = draft.texts.get(role, 0)
        if total + size <= PLAN_MAX:
            total += size
            continue
        what = f"{size} characters of text. With those before it that is more than the {PLAN_MAX}"
        rows = draft.noted[notes.of_deriving(role)].rows
        _refuse(rows, families, f"{what} that all roles")
        draft.texts[role] = 0
        refused.append(role)
    return refused


def fit(draft: Draft) -> bool:
    """Whether all roles together hold no more than they may."""
    return sum(draft.texts.values()) <= PLAN_MAX


def _refuse(rows: Rows, families: Iterable[Family], what: str) -> None:
    for family in families:
        family.program = replace(
            family.program, units=(), resources={}, volumes={}, requirements=(), requests={}
        )
    role = next(iter(families)).assignment.id
    rows.add(
        "wrong-type",
        role,
        "",
        f"the entries of {role} hold {what} may have in a plan",
        "ship what is long as a file, or place the role on fewer machines",
    )


def _of_family(family: Family) -> int:
    """What its entries say, and what it asks of each of its providers."""
    size = _of(family.program)
    for slot, binding in zip(family.assignment.slots, family.bindings, strict=True):
        request = family.program.requests.get(slot.name)
        if request and binding is not None:
            size += _length(dict(request)) * len(binding.targets)
    return size * len(family.machines)


def _of(program: Program) -> int:
    trees = (program.resources, program.volumes, program.extras)
    size = sum(_length(dict(tree)) for tree in (*trees, *program.requirements))
    for unit in program.units:
        size += sum(
            _length(dict(tree)) for tree in (unit.fields, unit.env, unit.configs, unit.live)
        )
        size += _length(dict(unit.dynamic))
    return size


def _length(tree: Tree | Gap | Contract) -> int:
    if isinstance(tree, str):
        return len(tree)
    if terms.is_text(tree):
        return terms.length(tree)
    if is_table(tree):
        return sum(len(name) + _length(item) for name, item in tree.items())
    if is_list(tree):
        return sum(map(_length, tree))
    if isinstance(tree, Gap | Contract):
        return 0 if tree.template is None else terms.length(tree.template)
    return 0
