"""From a unit of a plan to the unit that an agent runs, or rows that say why it cannot."""

from collections.abc import Mapping
from typing import Any, cast

from msgspec import UnsetType

from keyplane.model import duration
from keyplane.model.declaration import ConfigFile, DeclaredUnit, Health, Reload, Restart
from keyplane.model.diagnostic import Diagnostic
from keyplane.model.module import UnitKind
from keyplane.model.names import Digest, EntryId, UnitName
from keyplane.model.plan import Entry, Unit
from keyplane.rollout import declaring_values

Json = Any

HOLE = "hole"
"""The code of the row for a value that is not known yet."""

_ABSENT_FIELDS = {
    "bundle": "bundles",
    "nix": "nix artifacts",
    "image": "containers",
    "schedule": "scheduled jobs",
    "while_stopped": "scheduled jobs",
}
"""Fields by which a unit asks for what agents do not do yet."""


def declare_unit(
    entry_id: EntryId, entry: Entry, name: str, rows: list[Diagnostic]
) -> DeclaredUnit | None:
    """The unit; None where a row was added."""
    unit = entry.units[name]
    found = [
        *_kind_rows(entry_id, name, unit),
        *_value_rows(entry_id, name, unit),
        *_duration_rows(entry_id, name, unit),
    ]
    archive = None
    if isinstance(unit.archive, str):
        archive = entry.artifacts.get(unit.archive)
        if archive is None:
            found.append(unbuilt(entry_id, f"units.{name}.archive", unit.archive))
    rows.extend(found)
    if found:
        return None
    default = DeclaredUnit(digest=Digest(unit.digest), kind=unit.kind)
    return DeclaredUnit(
        digest=default.digest,
        kind=default.kind,
        command=tuple(_set(unit.command, ())),
        env={variable: str(unit.env[variable]) for variable in sorted(unit.env)},
        config={
            path: ConfigFile(digest=Digest(str(unit.config_data[path])))
            for path in sorted(unit.config_data)
        },
        archive=None if archive is None else Digest(archive),
        user=_set(unit.user, None),
        working_directory=_set(unit.working_directory, None),
        limits=_set(unit.limits, {}),
        run_once=unit.run_once is True,
        health=_health(_set(unit.health, None)),
        reload=_reload(_set(unit.reload, None)),
        restart=Restart(_set(unit.restart, default.restart)),
        stop_timeout_ms=_ms(unit.stop_timeout, default.stop_timeout_ms),
        dynamic=declaring_values.contracts_of(unit),
        start_first=unit.handover == "start-first" and not _set(unit.stop_first, ""),
        replaces=None if _set(unit.stop_first, "") else _replaced(unit),
    )


def refusal(entry_id: EntryId, path: str, what: str, feature: str) -> Diagnostic:
    """The row for what this release's agents cannot do."""
    return Diagnostic(
        code="unsupported",
        subject=entry_id,
        path=path,
        message=f"Agents of this release cannot run {what} of {entry_id}: no {feature} yet.",
        resolution=(
            f"leave {path} out of the module",
            "keep this version of the fleet for planning, and apply it with a later release",
        ),
    )


def unbuilt(entry_id: EntryId, path: str, artifact: str) -> Diagnostic:
    return Diagnostic(
        code="unbuilt",
        subject=entry_id,
        path=path,
        message=f"The artifact {artifact} of {entry_id} was never built.",
        resolution=(f"let build.archives.{artifact}.directory name a directory of the module",),
    )


def patience_ms(entry: Entry) -> int:
    """How much longer than usual the entry may take, as it says itself."""
    stated = [0]
    for unit in entry.units.values():
        health = _set(unit.health, cast("Mapping[str, Json]", {}))
        stated.append(_ms(unit.stop_timeout, 0) + _ms(health.get("startPeriod"), 0))
    return max(stated)


def _kind_rows(entry_id: EntryId, name: str, unit: Unit) -> list[Diagnostic]:
    place = f"units.{name}"
    if unit.kind not in (UnitKind.PROCESS, UnitKind.JOB):
        said = f"the {unit.kind} {name}"
        return [refusal(entry_id, f"{place}.kind", said, f"units of kind {unit.kind}")]
    rows = [
        refusal(entry_id, f"{place}.{_spelled(field)}", f"{_spelled(field)} of {name}", feature)
        for field, feature in _ABSENT_FIELDS.items()
        if not isinstance(getattr(unit, field), UnsetType)
    ]
    if unit.kind == UnitKind.JOB and unit.run_once is not True and not rows:
        rows.append(refusal(entry_id, f"{place}.runOnce", f"the job {name}", "jobs but runOnce"))
    return rows


def _replaced(unit: Unit) -> UnitName | None:
    return None if isinstance(unit.replaces, UnsetType) else UnitName(unit.replaces)


def _value_rows(entry_id: EntryId, name: str, unit: Unit) -> list[Diagnostic]:
    rows = declaring_values.rows(entry_id, name, unit)
    for values in (unit.env, unit.config_data):
        for value_name, value in sorted(values.items()):
            if not isinstance(value, str):
                rows.append(_hole(entry_id, name, value_name, value.hole.fact, value.hole.machine))
    return rows


def _hole(entry_id: EntryId, unit: str, name: str, fact: str, machine: str) -> Diagnostic:
    return Diagnostic(
        code=HOLE,
        subject=entry_id,
        path=f"units.{unit}.{declaring_values.place_of(name)}",
        message=f"{name} of {unit} waits for the fact {fact} of {machine}, which nobody says.",
        resolution=(
            f"start the agent of {machine}: it publishes its facts",
            f"give the fact in facts/{machine}.json",
        ),
    )


def _duration_rows(entry_id: EntryId, name: str, unit: Unit) -> list[Diagnostic]:
    health = _set(unit.health, cast("Mapping[str, Json]", {}))
    stated = {f"health.{field}": health.get(field) for field in _HEALTH_TIMES}
    stated["stopTimeout"] = _set(unit.stop_timeout, None)
    return [
        Diagnostic(
            code="wrong-type",
            subject=entry_id,
            path=f"units.{name}.{field}",
            message=f"{value!r} is no duration.",
            resolution=("write a whole number and one of ms, s, m, h, d, such as 30s",),
        )
        for field, value in sorted(stated.items())
        if value is not None and duration.parse(str(value)) is None
    ]


_HEALTH_TIMES = {
    "interval": "interval_ms",
    "timeout": "timeout_ms",
    "startPeriod": "start_period_ms",
}


def _health(stated: Mapping[str, Json] | None) -> Health | None:
    if stated is None:
        return None
    given: dict[str, Json] = {
        field: _ms(stated[name], 0) for name, field in _HEALTH_TIMES.items() if name in stated
    }
    if "retries" in stated:
        given["retries"] = int(stated["retries"])
    return Health(
        http=stated.get("http"),
        tcp=stated.get("tcp"),
        command=_words(stated.get("command")),
        **given,
    )


def _reload(stated: Mapping[str, Json] | None) -> Reload | None:
    if stated is None:
        return None
    signal = stated.get("signal")
    return Reload(
        signal=None if signal is None else str(signal).removeprefix("SIG"),
        command=_words(stated.get("command")),
    )


def _words(value: Json) -> tuple[str, ...] | None:
    return None if value is None else tuple(str(word) for word in value)


def _ms(value: Json, default: int) -> int:
    parsed = duration.parse(value) if isinstance(value, str) else None
    return default if parsed is None else parsed.milliseconds


def _spelled(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _set(value: Any, default: Any) -> Any:
    return default if isinstance(value, UnsetType) else value
