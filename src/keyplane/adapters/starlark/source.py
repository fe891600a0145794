"""Starlark text made ready to run, with the way back from a position in it to what was written.

The language gives no value that reads both by attribute and by item, which `ctx` promises. So
`x[k]` becomes `_at(x)[k]`, where `_at` makes a dict of a struct and leaves everything else alone.
A fact may have any name, so `ctx.machine.facts[k]` becomes `_fact(ctx.machine.facts, k)`.
The text is read by Python's own parser, whose syntax Starlark's is a part of; what that cannot
read is run as it stands.
"""

import ast
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field

GLUE = "keyplane:glue"
"""The name of our own file; no `load` of a document can mean it."""
_PRELUDE = f'load("{GLUE}", _at = "at", _fact = "fact")\n'
_REWRITTEN_MAX = 1 << 20
"""Characters: Python's tree takes a hundred times the text. Larger files are data, not functions."""
_FACT_NAME = re.compile(r"[\w.:/@+-]{1,200}")

_Edits = dict[int, list[tuple[int, int, str]]]
"""By line, from 1: before which character, from 0; how many characters go; what comes instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file, ready to run."""

    file: str
    written: str
    text: str
    edits: _Edits = field(default_factory=dict[int, list[tuple[int, int, str]]])
    prelude_lines: int = 0

    def position(self, line: int, column: int) -> tuple[int, int]:
        """Where the author wrote what stands at this line and column of the text, from 1."""
        line -= self.prelude_lines
        shift = 0
        for at, gone, text in _ordered(self.edits.get(line, [])):
            if at + shift + len(text) > column - 1:
                break
            shift += len(text) - gone
        return max(line, 1), max(column - shift, 1)

    def line(self, number: int) -> str:
        lines = self.written.splitlines()
        return lines[number - 1] if 0 < number <= len(lines) else ""


def plain(file: str, written: str) -> Source:
    """The text as it stands."""
    return Source(file=file, written=written, text=written)


def by_item(file: str, written: str, number: int, *, traced: bool) -> Source:
    """The text with `x[k]` for structs; `traced`: each statement also says that it begins.

    `number` is what `_here` is told for this file. `_same` returns what it is given.
    """
    tree = parsed(written)
    if tree is None:
        return plain(file, written)
    lines = written.split("\n")
    edits: _Edits = {}

    def edit(line: int, offset: int, text: str, gone: int = 0) -> None:
        column = len(lines[line - 1].encode()[:offset].decode(errors="replace"))
        edits.setdefault(line, []).append((column, gone, text))

    for node in _subscripts(tree):
        begin, end = node.value, _end(node.value)
        if _is_facts(node.value) and lines[end[0] - 1].encode()[end[1] : end[1] + 1] == b"[":
            line, offset = _end(node)
            edit(begin.lineno, begin.col_offset, "_fact(")
            edit(*end, ", ", 1)
            edit(line, offset - 1, ")", 1)
        else:
            edit(begin.lineno, begin.col_offset, "_at(")
            edit(*end, ")")
    if traced:
        for statement in _simple_statements(tree):
            line, offset = statement.lineno, statement.col_offset
            edit(line, offset, f"_here({number}, {line}, {offset + 1}); ")
        for constant in _folded(tree):
            edit(constant.lineno, constant.col_offset, "_same(")
            edit(*_end(constant), ")")
    return Source(
        file=file,
        written=written,
        text=_PRELUDE + "\n".join(_with(lines, edits)),
        edits=edits,
        prelude_lines=1,
    )


def parsed(written: str) -> ast.Module | None:
    """The text as Python reads it, if it does."""
    if len(written) > _REWRITTEN_MAX:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(written)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def fact_names(written: str) -> Iterator[str]:
    """Every name of a fact that the text could mean: a struct has to be told its fields."""
    tree = parsed(written)
    if tree is None:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str) and _FACT_NAME.fullmatch(node.value):
                yield node.value
        elif isinstance(node, ast.Attribute):
            chain = _chain(node)
            names = chain[chain.index("facts") + 1 :] if "facts" in chain else chain
            if names:
                yield ".".join(names)


def definition(written: str, function: str) -> tuple[int, int]:
    """Where a function of a file is defined, or the file's beginning."""
    pattern = re.compile(rf"^(?:def\s+{function}\b|{function}\s*=)")
    for number, line in enumerate(written.splitlines(), 1):
        if pattern.match(line):
            return number, 1
    return 1, 1


def _chain(node: ast.Attribute) -> list[str]:
    names: list[str] = []
    inner: ast.expr = node
    while isinstance(inner, ast.Attribute):
        names.append(inner.attr)
        inner = inner.value
    return names[::-1]


def _subscripts(tree: ast.Module) -> Iterator[ast.Subscript]:
    """Each `x[k]` that is read and could be of a struct. Annotations and f-strings are left alone."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            index = node.slice
            number = isinstance(index, ast.Constant) and isinstance(index.value, int)
            if not isinstance(index, ast.Slice) and not number:
                yield node
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            below: list[object] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType] - of a field
            waiting.extend(one for one in below if isinstance(one, ast.AST))


def _is_facts(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value == "facts"
    return isinstance(node, ast.Attribute) and node.attr == "facts"


def _end(node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _simple_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        compound = isinstance(node, (ast.FunctionDef, ast.If, ast.For))
        if isinstance(node, ast.stmt) and not compound and not _is_load(node):
            yield node


def _folded(tree: ast.Module) -> Iterator[ast.Constant]:
    """Constants that the library would compute with before any statement begins."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant):
            yield node.left


def _is_load(node: ast.stmt) -> bool:
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "load"


def _with(lines: list[str], edits: _Edits) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        parts: list[str] = []
        last = 0
        for at, gone, text in _ordered(edits.get(number, [])):
            parts.extend((line[last:at], text))
            last = at + gone
        yield "".join((*parts, line[last:]))


def _ordered(edits: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """By place. At one place: a statement's mark, what closes, what opens, what replaces."""

    def rank(edit: tuple[int, int, str]) -> tuple[int, int]:
        at, gone, text = edit
        if text.startswith("_here"):
            return at, 0
        return at, 3 if gone else 1 if text == ")" else 2

    return sorted(edits, key=rank)
