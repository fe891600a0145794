"""Edits brought into the text of a fleet document, which else stays as people wrote it.

TOML is edited in place: comments, order, spelling and line ends of all that an edit does not touch
are the same bytes as before. JSON is written anew in its own indentation. What Starlark computes
cannot be edited. No result is believed: it is read again, and has to be what was there with
the edit made, or the edit is refused.
"""

import copy
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

import tomlkit
from tomlkit.container import Container, OutOfOrderTableProxy
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, InlineTable, Table

from keyplane.documents.edits import Put, Refused, Remove, Step
from keyplane.documents.text import Unreadable, parse
from keyplane.documents.trees import is_list, is_table

Json = Any
Holder = Container | Table | InlineTable | OutOfOrderTableProxy

_KEPT_DEPTH = 2
"""`machines.NAME` and `instances.NAME` stay, however empty."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def rewrite(files: Mapping[str, bytes], steps: Sequence[Step]) -> dict[str, bytes] | Refused:
    """The text with the steps made in its fleet document."""
    found = [name for name in ("fleet.toml", "fleet.json") if name in files]
    if not found:
        star = "fleet.star" in files
        where = "what fleet() of fleet.star returns" if star else "the fleet document"
        why = "Starlark computes it" if star else "it is reached by a link"
        return Refused(f"{why}, and it cannot be edited from here: {by_hand(steps, where)}")
    name = found[0]
    spelling = name.rpartition(".")[2]
    before = parse(files[name], spelling=spelling)
    if isinstance(before, Unreadable):
        return Refused(f"{name}: {before.message}")
    wanted = edited(before, steps)
    write = _toml if spelling == "toml" else _json
    made = write(files[name].decode(), wanted, steps)
    if made is None or not _is(parse(made.encode(), spelling=spelling), wanted, steps):
        return Refused(
            f"{name} is written in a way that cannot be edited in place: {by_hand(steps, name)}"
        )
    return {**files, name: made.encode()}


def by_hand(steps: Sequence[Step], where: str) -> str:
    """What a person has to do in place of us."""
    said = [
        f"set {'.'.join(step.path)} to {json.dumps(step.value, ensure_ascii=False)}"
        if isinstance(step, Put)
        else f"remove {'.'.join(step.path)}"
        for step in steps
    ]
    return f"{' and '.join(said)} in {where}, and `keyplane apply`"


def edited(tree: Mapping[str, Json], steps: Sequence[Step]) -> dict[str, Json]:
    """The values of a document after the steps."""
    made = copy.deepcopy(dict(tree))
    for step in steps:
        at = made
        for part in step.path[:-1]:
            at = at.setdefault(part, {}) if isinstance(step, Put) else at[part]
        if isinstance(step, Put):
            at[step.path[-1]] = step.value
        else:
            del at[step.path[-1]]
            _prune(made, step.path[:-1])
    return made


def _prune(tree: Json, path: tuple[str, ...]) -> None:
    """Remove the tables of a path that hold nothing, from the inside out."""
    while len(path) > _KEPT_DEPTH:
        *outer, last = path
        holder = tree
        for part in outer:
            holder = holder.get(part, {})
        if holder.get(last):
            return
        holder.pop(last, None)
        path = tuple(outer)


def _is(read: Json, wanted: Json, steps: Sequence[Step]) -> bool:
    """Whether a document says what is wanted; tables that a removal emptied may be left."""
    if not is_table(read):
        return False
    for step in steps:
        if isinstance(step, Remove):
            _prune(read, step.path[:-1])
    return _is_exactly(read, wanted)


def _is_exactly(read: Json, wanted: Json) -> bool:
    """Equal, and of the same types throughout: 1, 1.0 and true are three values."""
    if read.__class__ is not wanted.__class__:
        return False
    if is_table(wanted) and is_table(read):
        return read.keys() == wanted.keys() and all(
            _is_exactly(read[key], value) for key, value in wanted.items()
        )
    if is_list(wanted) and is_list(read):
        return len(read) == len(wanted) and all(map(_is_exactly, read, wanted))
    return bool(read == wanted)


def _json(text: str, wanted: Mapping[str, Json], steps: Sequence[Step]) -> str:
    del steps
    found = re.search(r"[{\[]\r?\n([ \t]+)", text)
    indent = found[1] if found else None
    spaced = re.search(r'":[ \t]', text) is not None
    pair = ": " if spaced or indent else ":"
    item = "," if indent or not re.search(r",[ \t]", text) else ", "
    made = json.dumps(wanted, ensure_ascii=False, indent=indent, separators=(item, pair))
    made += text[len(text.rstrip()) :].replace("\r\n", "\n")
    return made.replace("\n", "\r\n") if "\r\n" in text else made


def _toml(text: str, wanted: Mapping[str, Json], steps: Sequence[Step]) -> str | None:
    """None where it cannot be done in place."""
    for step in steps:
        made = _toml_step(text, step)
        if made is None:
            return None
        text = made
    return text if _is(_loads(text), wanted, steps) else None


def _toml_step(text: str, step: Step) -> str | None:
    before = _loads(text)
    if before is None:
        return None
    wanted = edited(before, (step,))
    ways = (_in_place, _as_line, _as_table) if isinstance(step, Put) else (_without,)
    for way in ways:
        try:
            made = way(text, step)
        except (TOMLKitError, KeyError, TypeError, ValueError, AttributeError, IndexError):
            continue  # a spelling that this way does not know; the next one may
        if made is not None and _is(_loads(made), wanted, (step,)):
            return made
    return None


def _loads(text: str) -> dict[str, Json] | None:
    try:
        return tomllib.loads(text)
    except ValueError:
        return None


def _in_place(text: str, step: Step) -> str | None:
    """Replace a value that is there, or add it beside its siblings."""
    assert isinstance(step, Put)
    document = tomlkit.parse(text)
    if tomlkit.dumps(document) != text:
        return None
    at: Json = document
    depth = 0
    while depth < len(step.path) - 1 and step.path[depth] in at:
        at, depth = at[step.path[depth]], depth + 1
    rest = step.path[depth:]
    if len(rest) == 1 and rest[0] in at:
        if not (isinstance(at[rest[0]], Array) and _become(at[rest[0]], step.value)):
            at[rest[0]] = _like(at[rest[0]], step.value)
    elif len(rest) == 1 and _keeps_lines(at):
        at[rest[0]] = _item(step.value)
    elif isinstance(at, InlineTable):
        value = step.value
        for part in reversed(rest[1:]):
            value = {part: value}
        at[rest[0]] = _item(value)
    else:
        return None
    return tomlkit.dumps(document)


def _keeps_lines(holder: Holder) -> bool:
    """Whether a value that is added stands among those that are there."""
    return isinstance(holder, InlineTable) or (
        isinstance(holder, Table)
        and any(
            not isinstance(holder[key], Table) or holder[key].is_super_table() for key in holder
        )
    )


def _become(array: Json, wanted: Json) -> bool:
    """Take out and add what differs; what stays keeps its place and its comments.

    False where it would have to change its place.
    """
    if not is_list(wanted):
        return False
    left = [value for value in array if value in wanted]
    if wanted[: len(left)] != left:
        return False
    for index in reversed(range(len(array))):
        if array[index] not in wanted:
            del array[index]
    for value in wanted[len(left) :]:
        array.append(value)
    return True


def _like(old: Json, value: Json) -> Json:
    """The value, with the comment of the one that it replaces."""
    made = _item(value)
    if hasattr(old, "trivia") and hasattr(made, "trivia"):
        made.trivia.indent = old.trivia.indent
        made.trivia.comment_ws = old.trivia.comment_ws
        made.trivia.comment = old.trivia.comment
        made.trivia.trail = old.trivia.trail
    return made


def _item(value: Json) -> Json:
    make: Json = tomlkit.item  # its stubs know less of the types than it does
    if not is_table(value):
        return make(value)
    made: Json = tomlkit.inline_table()
    for key, each in value.items():
        made[key] = _item(each)
    return made


def _text(value: Json) -> str:
    if not is_table(value):
        return str(_item(value).as_string())
    return "{ " + ", ".join(f"{_key((key,))} = {_text(each)}" for key, each in value.items()) + " }"


def _as_line(text: str, step: Step) -> str | None:
    """Add `settings.server.slots = 64` at the end of the machine's or the instance's own lines."""
    assert isinstance(step, Put)
    head, rest = step.path[:_KEPT_DEPTH], step.path[_KEPT_DEPTH:]
    lines = text.splitlines(keepends=True)
    start = next((at for at, line in enumerate(lines) if _heads(line, head)), None)
    if start is None:
        return None
    later = (at for at in range(start + 1, len(lines)) if lines[at].lstrip().startswith("["))
    end = next(later, len(lines))
    while end > start + 1 and lines[end - 1].strip()[:1] in ("", "#"):
        end -= 1
    line = f"{_key(rest)} = {_text(step.value)}"
    return _inserted(lines, end, [line])


def _as_table(text: str, step: Step) -> str | None:
    """A table of its own, at the end of the document."""
    assert isinstance(step, Put)
    head, rest = step.path[:_KEPT_DEPTH], step.path[_KEPT_DEPTH:]
    lines = text.splitlines(keepends=True)
    value = f"{_key(rest)} = {_text(step.value)}"
    return _inserted(lines, len(lines), ["", f"[{_key(head)}]", value])


def _heads(line: str, path: tuple[str, ...]) -> bool:
    line = line.strip()
    if not line.startswith("[") or line.startswith("[["):
        return False
    read = _loads(line)
    for part in path:
        if not isinstance(read, dict) or list(read) != [part]:
            return False
        read = read[part]
    return read == {}


def _inserted(lines: list[str], at: int, new: list[str]) -> str:
    end = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if at and not lines[at - 1].endswith("\n"):
        lines[at - 1] += end
    return "".join((*lines[:at], *(line + end for line in new), *lines[at:]))


def _key(path: tuple[str, ...]) -> str:
    return ".".join(part if _BARE.fullmatch(part) else json.dumps(part) for part in path)


def _without(text: str, step: Step) -> str | None:
    assert isinstance(step, Remove)
    document = tomlkit.parse(text)
    if tomlkit.dumps(document) != text:
        return None
    at: Json = document
    for part in step.path[:-1]:
        at = at[part]
    del at[step.path[-1]]
    return tomlkit.dumps(document)
