"""Trees and texts filled in with the values of an entry's own machine.

One family is filled a column at a time: a value for each of its machines. What is the same on all
of them is computed once and shared.
"""

from collections.abc import Mapping, Sequence

from msgspec import UNSET

from keyplane.documents.trees import is_list, is_table
from keyplane.model.module import Json
from keyplane.model.plan import Dynamic, Hole, HoleValue
from keyplane.planner import canonical, terms
from keyplane.planner.draft import Draft
from keyplane.planner.program import Contract, Family, Gap
from keyplane.planner.terms import Live, Own, OwnKind, Parts, Tree

Values = Mapping[Own, Json]


def columns(draft: Draft, family: Family) -> dict[Own, list[Json]]:
    """A value for each machine of each of the values that the program waits for."""
    found: dict[Own, list[Json]] = {}
    for own in family.owns:
        match own.kind:
            case OwnKind.NAME:
                found[own] = list(family.machines)
            case OwnKind.PORT:
                name = f"{own.holder}/{own.name}"
                found[own] = [draft.ports[machine][name] for machine in family.machines]
            case OwnKind.ADDRESS:
                machines = draft.fleet.machines
                found[own] = [machines[machine].address for machine in family.machines]
            case OwnKind.FACT:
                found[own] = [draft.fact(machine, own.name) for machine in family.machines]
    return found


def tree(value: Tree, values: Values) -> Json:
    """The tree with every text filled in."""
    if terms.is_text(value):
        return text(value, values)
    if is_table(value):
        return {key: tree(item, values) for key, item in value.items()}
    if is_list(value):
        return [tree(item, values) for item in value]
    return value


def text(parts: Parts, values: Values) -> Json:
    """The text; a value that stands alone keeps its type."""
    if len(parts) == 1:
        return values[parts[0]] if isinstance(parts[0], Own) else parts[0]
    return "".join(
        canonical.text(values[part] if isinstance(part, Own) else part) for part in parts
    )


def template(parts: Parts, values: Values) -> str:
    """The text, with the dynamic references and the holes in it as they were written.

    What reads like one of them and is none, since it was escaped or a value says so, is escaped.
    """
    filled = (values[part] if isinstance(part, Own) else part for part in parts)
    return terms.written(
        tuple(
            canonical.text(part).replace("${results.", "$${results.")
            if terms.is_value(part)
            else part
            for part in filled
        )
    )


def text_column(parts: Parts, by_own: Mapping[Own, Sequence[Json]]) -> list[str]:
    """The text for each machine."""
    owns = [part for part in parts if isinstance(part, Own)]
    form = "".join(
        "%s" if isinstance(part, Own) else canonical.text(part).replace("%", "%%") for part in parts
    )
    texts = [_texts(own, by_own[own]) for own in owns]
    if len(texts) == 1:
        return [form % one for one in texts[0]]
    return [form % row for row in zip(*texts, strict=True)]


def gap(value: Gap, machine: str, values: Values) -> HoleValue:
    hole = value.hole
    return HoleValue(
        hole=Hole(
            fact=hole.fact,
            machine=machine if hole.machine is None else hole.machine,
            type=hole.type,
            template=UNSET if value.template is None else template(value.template, values),
        )
    )


def dynamic(contract: Contract, machine: str, values: Values) -> Dynamic:
    sources = [_source(live, machine) for live in contract.lives]
    return Dynamic(
        from_=sources[0] if len(sources) == 1 else sources,
        transport="bus",
        reaction=UNSET if contract.reaction is None else contract.reaction,
        on_missing=contract.on_missing,
        max_staleness=UNSET if contract.max_staleness is None else contract.max_staleness,
        template=UNSET if contract.template is None else template(contract.template, values),
    )


def _source(live: Live, machine: str) -> str:
    where = machine if live.machine is None else live.machine
    return f"{live.provider}{where}{live.suffix}"


def _texts(own: Own, column: Sequence[Json]) -> Sequence[Json]:
    """Ports print as they are; only a fact may be of any type."""
    if own.kind is OwnKind.FACT:
        return [canonical.text(value) for value in column]
    return column
