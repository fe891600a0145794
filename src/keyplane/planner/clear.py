"""Secrets that stand in clear: said as a warning, and never repeated."""

import re
from collections.abc import Iterator

from keyplane.documents.references import Reference
from keyplane.documents.trees import is_list, is_table
from keyplane.model.diagnostic import Severity
from keyplane.model.module import Json
from keyplane.planner import compiled, terms
from keyplane.planner.draft import Assignment, Draft
from keyplane.planner.rows import Rows
from keyplane.planner.terms import Tree

NAMES = ("PASSWORD", "PASSWD", "SECRET", "TOKEN", "PRIVATE_KEY")
_UNKNOWN = "\x00"
"""Stands for a reference: what comes from elsewhere is not in clear here."""
URL = re.compile(r"[A-Za-z0-9+.-]://[^\s/:@]*+:([^\s/@]++)@")
"""No more of the scheme than its end: a long word would be read from each of its letters."""


def check_body(draft: Draft, assignment: Assignment) -> None:
    """Warn of each literal secret in the role and its exports."""
    for unit in assignment.body.units:
        for name, value in unit.env.items():
            if name.endswith(NAMES) and _is_literal(value):
                path = f"units.{unit.name}.env.{name}"
                _warn(draft.rows, assignment.id, path, f"variable {name} of unit {unit.name}")
    for path, tree in compiled.places(assignment.compiled, assignment.body):
        check_tree(draft.rows, assignment.id, path, tree)
    for provide, exports in assignment.body.exports.items():
        for export, variants in exports.items():
            for variant in variants:
                path = f"provides.{provide}.exports.{export}"
                check_tree(draft.rows, assignment.id, f"{path}.value", variant.value)
                check_tree(draft.rows, assignment.id, f"{path}.source", dict(variant.source or {}))
    for name, reaction in sorted(assignment.role.reactions.items()):
        path = f"reactions.{name}.onMissing.default"
        check_tree(draft.rows, assignment.id, path, reaction.default)


def check_settings(draft: Draft, assignment: Assignment) -> None:
    for name, value in assignment.settings.items():
        check_tree(draft.rows, assignment.id, f"settings.{name}", value)


def _is_literal(value: Tree) -> bool:
    """Whether a variable's value is all written there; yes and no are no secrets."""
    return not (terms.is_text(value) or isinstance(value, bool) or value in ("", None))


def check_tree(rows: Rows, subject: str, path: str, tree: Tree) -> None:
    """Warn of each URL with a password in it."""
    for at, text in _texts(path, tree):
        if any(found.strip(_UNKNOWN) for found in URL.findall(text)):
            _warn(rows, subject, at, "a URL with user:password@")


def _texts(path: str, tree: Tree) -> Iterator[tuple[str, str]]:
    if isinstance(tree, str):
        if "://" in tree:
            yield path, tree
    elif terms.is_text(tree):
        yield path, "".join(_literal(part) for part in tree)
    elif is_table(tree):
        for key in sorted(tree):
            yield from _texts(f"{path}.{key}", tree[key])
    elif is_list(tree):
        for index, item in enumerate(tree):
            yield from _texts(f"{path}[{index}]", item)


def _literal(part: Json) -> str:
    if isinstance(part, str):
        return part
    assert isinstance(part, Reference) or hasattr(part, "text")
    return _UNKNOWN


def _warn(rows: Rows, subject: str, path: str, what: str) -> None:
    rows.add(
        "secret-in-clear",
        subject,
        path,
        f"{what} is a secret in clear text ({path} of {subject})",
        "declare it in `secrets` and refer to the file with ${secrets.NAME}",
        severity=Severity.WARNING,
    )
