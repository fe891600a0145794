"""What the documents say of how each instance is rolled out."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from keyplane.model.documents import Documents
from keyplane.model.module import Policy
from keyplane.model.names import EntryId, MachineName, split_entry
from keyplane.rollout import declaring_units
from keyplane.rollout.planned import Planned
from keyplane.rollout.steps import Step
from keyplane.rollout.volumes import Transfers

SETTLE_MS = 10_000
"""Longer than a start that fails at once takes to show, and no burden on whoever waits."""

FIRST, TOGETHER, RECORD = "first", "together", "record"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A policy with nothing left open."""

    upgrade: str = FIRST
    max_unavailable: int | None = 1
    """How many members of a role may be restarted at once; None: any number."""
    settle_ms: int = SETTLE_MS
    """How long a first machine is to be well before others follow."""
    deadline_ms: int | None = None
    """How long nothing new may be heard of what was sent; None: the usual time, and what its units
    say that they take."""
    rolls_back: bool = False
    away: int | None = None
    """`maxUnavailable` where it is stated: whatever the cause, no more members may be down."""
    floors: Mapping[str, int] = field(default_factory=dict[str, int])
    """By role: so many members have to stay up."""


Rules = Mapping[str, Rule]
"""By instance; one that is implied is named as its module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How the changes of an instance go over machines."""

    module: str
    is_first: bool
    """One machine goes first."""
    settle_ms: int
    max_unavailable: int | None


Paces = Mapping[str, Pace]
"""By instance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """On what terms a rollout begins."""

    rules: Rules = field(default_factory=dict[str, Rule])
    absent: frozenset[MachineName] = frozenset()
    """Machines that were not heard for a while."""
    lost: frozenset[MachineName] = frozenset()
    """Those that will not be back, as a person says: waited for only as long as they are heard."""
    named: frozenset[MachineName] = frozenset()
    """Those to which a person sends what is else only recorded."""
    unnamed: Mapping[MachineName, str] = field(default_factory=dict[MachineName, str])
    """Machines that are sent nothing as nobody named them, and why that is asked for."""
    withheld: Mapping[EntryId, str] = field(default_factory=dict[EntryId, str])
    """What nobody can have sent, as facts stand, and why."""
    paused: str = ""
    """Why nothing is to be sent yet."""
    transfers: Transfers = field(default_factory=Transfers)
    """Of the data of entries that go elsewhere."""


def rules(documents: Documents) -> Rules:
    found = {name: _rule(module.policy) for name, module in documents.modules.items()}
    if documents.fleet is None:
        return found
    for name, instance in documents.fleet.instances.items():
        module = documents.modules.get(instance.module)
        of_module = Policy() if module is None else module.policy
        found[name] = replace(_rule(instance.policy, of_module), floors=instance.floor)
    return found


def recorded(
    base: Iterable[EntryId], target: Iterable[EntryId], terms: Terms
) -> dict[EntryId, str]:
    """What is not sent, be it to switch or to go, and why where no policy says so."""
    target = frozenset(target)
    unnamed = {
        entry: terms.unnamed[machine]
        for entry in (target.union(base) if terms.unnamed else ())
        if (machine := split_entry(entry)[2]) in terms.unnamed
    }
    by_policy = (
        entry
        for entry in target
        if split_entry(entry)[2] not in terms.named and of(terms.rules, entry).upgrade == RECORD
    )
    return {**dict.fromkeys(by_policy, ""), **unnamed, **terms.withheld}


def of(given: Rules, entry: EntryId) -> Rule:
    return given.get(split_entry(entry)[0], Rule())


def paces(
    given: Rules, steps: Iterable[Step], target: Mapping[EntryId, Planned]
) -> dict[str, Pace]:
    """Of all instances of which these steps switch something, or wait for it."""
    found: dict[str, Pace] = {}
    for entry in (entry for step in steps for entry in (*step.switched, *step.awaited)):
        instance = split_entry(entry)[0]
        if instance not in found:
            rule = given.get(instance, Rule())
            found[instance] = Pace(
                module=target[entry].entry.module,
                is_first=rule.upgrade == FIRST,
                settle_ms=rule.settle_ms,
                max_unavailable=rule.max_unavailable,
            )
    return found


def patience_ms(step: Step, target: Mapping[EntryId, Planned], rules: Rules, usual_ms: int) -> int:
    """How long nothing new may be heard of a step: what the most patient of its entries is given."""
    found: list[int] = []
    for entry in (*step.switched, *step.removed, *step.tightened, *step.awaited):
        stated_ms = of(rules, entry).deadline_ms
        longer_ms = declaring_units.patience_ms(target[entry].entry) if entry in target else 0
        found.append(usual_ms + longer_ms if stated_ms is None else stated_ms)
    return max(found, default=usual_ms)


def _rule(*policies: Policy) -> Rule:
    """The first that states a field has it."""
    upgrade = next((p.upgrade for p in policies if p.upgrade is not None), FIRST)
    most = next((p.max_unavailable for p in policies if p.max_unavailable is not None), None)
    settle = next((p.settle for p in policies if p.settle is not None), None)
    deadline = next((p.deadline for p in policies if p.deadline is not None), None)
    on_failure = next((p.on_failure for p in policies if p.on_failure is not None), "stop")
    return Rule(
        upgrade=upgrade,
        max_unavailable=1 if most is None and upgrade != TOGETHER else most,
        settle_ms=SETTLE_MS if settle is None else settle.milliseconds,
        deadline_ms=None if deadline is None else deadline.milliseconds,
        rolls_back=on_failure == "rollback",
        away=most,
    )
