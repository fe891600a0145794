"""Settings: what an instance gives, what the module defaults, and whether each value fits."""

import json
from collections.abc import Mapping

from keyplane.documents import patterns
from keyplane.documents.rows import shorten
from keyplane.documents.trees import is_list, is_table
from keyplane.model.fleet import Instance
from keyplane.model.interface import ValueType
from keyplane.model.module import Json, Setting
from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.rows import Rows, did_you_mean

_ARTICLE = {
    ValueType.STRING: "a string",
    ValueType.INTEGER: "an integer",
    ValueType.NUMBER: "a number",
    ValueType.BOOLEAN: "a boolean",
    ValueType.LIST: "a list of strings",
}


def is_of(value: Json, wanted: ValueType) -> bool:
    """Whether a JSON value has the type; `1.0` and `true` are no integers."""
    match wanted:
        case ValueType.STRING:
            return isinstance(value, str)
        case ValueType.INTEGER:
            return isinstance(value, int) and not isinstance(value, bool)
        case ValueType.NUMBER:
            return isinstance(value, int | float) and not isinstance(value, bool)
        case ValueType.BOOLEAN:
            return isinstance(value, bool)
        case ValueType.LIST:
            return is_list(value) and all(isinstance(item, str) for item in value)


def same(left: Json, right: Json) -> bool:
    """Equality of JSON values: `true` is not `1`, and `1.0` is `1`."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if is_list(left) and is_list(right):
        return len(left) == len(right) and all(map(same, left, right))
    if is_table(left) and is_table(right):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right


def broken_rule(value: Json, setting: Setting) -> str | None:
    """Which rule of the setting the value breaks, in words; None if it fits."""
    if not is_of(value, setting.type):
        return f'it must be {_ARTICLE[setting.type]} (type = "{setting.type.value}")'
    if setting.enum is not None and not any(same(value, item) for item in setting.enum):
        return "it must be one of " + ", ".join(show(item) for item in setting.enum)
    if setting.type in {ValueType.INTEGER, ValueType.NUMBER}:
        if setting.minimum is not None and value < setting.minimum:
            return f"it must be at least {show(setting.minimum)} (minimum)"
        if setting.maximum is not None and value > setting.maximum:
            return f"it must be at most {show(setting.maximum)} (maximum)"
    texts = [value] if isinstance(value, str) else value if is_list(value) else []
    pattern = setting.pattern
    if pattern is not None and not all(patterns.finds(pattern, text) for text in texts):
        subject = "it" if isinstance(value, str) else "each of its strings"
        return f"{subject} must match the pattern {pattern}"
    return None


def resolve(draft: Draft, assignment: Assignment) -> None:
    """Settle the settings of an assignment; rows for what is missing or does not fit."""
    instance = draft.instances.get(assignment.instance)
    given: Mapping[str, Json] = {}
    if instance is not None:
        given = instance.settings.get(assignment.role_name, {})
    check_given(draft, assignment, given)
    settled: dict[str, Json] = {}
    for name, setting in sorted(assignment.role.settings.items()):
        fits = not setting.has_default or _default_fits(draft.rows, assignment, name, setting)
        if name in given:
            if broken_rule(given[name], setting) is None:
                settled[name] = given[name]
            else:
                assignment.sound = False
        elif setting.has_default:
            if fits:
                settled[name] = setting.default
            else:
                assignment.sound = False
        else:
            assignment.sound = False
            draft.rows.add(
                "setting-missing",
                assignment.id,
                f"settings.{name}",
                f"settings.{name} of {assignment.id} is not set and has no default",
                *_ways_to_set(assignment, f"{name} = … ({_ARTICLE[setting.type]})", instance),
            )
    assignment.settings = settled


def _ways_to_set(assignment: Assignment, said: str, instance: Instance | None) -> tuple[str, ...]:
    """One that stands only because another needs it takes its settings of an instance of its name."""
    path = f"instances.{assignment.instance}"
    line = f"write {path}.settings.{assignment.role_name}.{said}"
    if instance is not None:
        return (line,)
    return line, f'and {path}.module = "{assignment.module.name}"'


def check_given(draft: Draft, assignment: Assignment, given: Mapping[str, Json]) -> None:
    """Rows for the settings that an instance gives and its role does not take."""
    rows = draft.rows
    for name, value in sorted(given.items()):
        if rows.is_full(assignment.id):
            return
        setting = assignment.role.settings.get(name)
        if setting is None and assignment.is_dropped(draft, "settings", name):
            continue
        if setting is None:
            rows.add(
                "unknown-setting",
                assignment.id,
                f"settings.{name}",
                f"{assignment.id} has no setting `{name}`",
                *did_you_mean(name, assignment.role.settings, "settings of the role"),
            )
        elif (rule := broken_rule(value, setting)) is not None:
            rows.add(
                "setting-invalid",
                assignment.id,
                f"settings.{name}",
                f"settings.{name} of {assignment.id} is {show(value)}: {rule}",
                f"change instances.{assignment.instance}.settings.{assignment.role_name}.{name}",
            )


def _default_fits(rows: Rows, assignment: Assignment, name: str, setting: Setting) -> bool:
    rule = broken_rule(setting.default, setting)
    if rule is None:
        return True
    rows.add(
        "setting-invalid",
        assignment.module.file,
        f"roles.{assignment.role_name}.settings.{name}.default",
        f"the default of settings.{name} is {show(setting.default)}: {rule}",
        "change the default or its rule",
    )
    return False


def show(value: Json) -> str:
    return shorten(json.dumps(value, ensure_ascii=False))
