"""Runs the functions that documents hold, and reads what they return.

Pure but for `Run`, which is a deterministic function of the call.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping

from keyplane.documents import contexts, modules, text
from keyplane.documents.evaluation import (
    Call,
    Evaluate,
    EvaluationRequest,
    EvaluationResult,
    Fault,
    Run,
    Value,
)
from keyplane.documents.roles import BODY
from keyplane.documents.rows import Path, Rows, shorten
from keyplane.documents.shapes import BROKEN
from keyplane.documents.text import Unreadable
from keyplane.documents.trees import is_list, is_table
from keyplane.model.module import Body, Json

_LOAD = re.compile(r"""\bload\s*\(\s*(?:"([^"\\\n]*)"|'([^'\\\n]*)')""")
_SOURCES_MAX = 500
"""Files that one document may load; each is parsed for each call."""

Shipped = Callable[[str, str], bytes | Unreadable]
"""A file of a module, by the module's directory and the path below it."""


def sources(
    file: str, read: Callable[[str], bytes | Unreadable | None]
) -> dict[str, str] | Unreadable:
    """The text of a Starlark file and of each that it may load. What is not there is left out."""
    found: dict[str, str] = {}
    waiting = [file]
    while waiting:
        path = waiting.pop()
        data = None if path in found else read(path)
        if not isinstance(data, bytes):
            continue
        if len(found) == _SOURCES_MAX:
            return Unreadable(f"loads more than {_SOURCES_MAX} files")
        try:
            found[path] = data.decode("utf-8")
        except UnicodeDecodeError:
            continue
        waiting.extend(
            loaded
            for match in _LOAD.finditer(found[path])
            if (loaded := target(match[1] or match[2] or "")) is not None
        )
    return found


def target(label: str) -> str | None:
    """The file that `load` means by `//PATH.star`; None if it may not mean any."""
    path = label.removeprefix("//")
    parts = path.split("/")
    if path == label or not path.endswith(".star") or any(p in ("", ".", "..") for p in parts):
        return None
    return path


def add_fault(rows: Rows, fault: Fault, about: str = "") -> None:
    """The row of a function that gave nothing."""
    where = f"{fault.file}:{fault.line}:{fault.column}"
    line = f": `{shorten(fault.source.strip())}`" if fault.source.strip() else ""
    rows.add("starlark", (), f"{where}: {fault.message}{line}{about}")


def evaluator(loads: Mapping[str, Mapping[str, str]], shipped: Shipped, run: Run) -> Evaluate:
    """What the planner calls for a role with `impl`. `loads` has the sources by module."""

    def evaluate(request: EvaluationRequest) -> EvaluationResult:
        rows = Rows(request.module.file)
        spent = False

        def running(call: Call) -> Value | Fault:
            nonlocal spent
            found = run(call)
            spent = spent or (isinstance(found, Fault) and found.spent)
            return found

        body = _computed(request, loads.get(request.module.name, {}), running, rows)
        files: dict[str, bytes] = {}
        if body is not None:
            directory = request.module.file.rpartition("/")[0]
            for file, path in modules.of_body(body):
                data = shipped(directory, file)
                if isinstance(data, bytes):
                    files[file] = data
                else:
                    rows.add("unreadable", ("roles", request.role, path), data.message)
        return EvaluationResult(
            body=body,
            shipped=files,
            dropped=rows.dropped,
            diagnostics=tuple(rows.found),
            spent=spent,
        )

    return evaluate


def _computed(
    request: EvaluationRequest, loads: Mapping[str, str], run: Run, rows: Rows
) -> Body | None:
    about = f" (for {request.instance}:{request.role})"
    spelling = contexts.other(request)

    def called(context: Json) -> Value | Fault:
        call = Call(
            sources=loads,
            file=request.module.file,
            function="module",
            role=request.role,
            context=context,
        )
        return run(call)

    value = called(contexts.context(request, contexts.Plain()))
    if isinstance(value, Fault):
        add_fault(rows, value, about)
        return None
    again = called(contexts.context(request, spelling))
    if isinstance(again, Fault):
        again_message = f"fails when references are spelled otherwise: {again.message}"
        add_fault(rows, _retold(again, again_message), about)
        return None
    path: Path = ("roles", request.role)
    for tree in (value.tree, again.tree):
        judged = text.judged(tree) if is_table(tree) else Unreadable("the function returns no dict")
        if isinstance(judged, Unreadable):
            rows.wrong(path, judged.message)
            return None
    differing = next(_differences(value.tree, spelling.plain(again.tree), path), None)
    if differing is not None:
        rows.add(
            "starlark",
            differing,
            f"{request.module.file}: what the function returns here depends on how a reference "
            f"is spelled{about}",
            "only format and join references; never compare them or look into them",
        )
        return None
    return _read(request, value.tree, path, rows)


def _read(request: EvaluationRequest, tree: Json, path: Path, rows: Rows) -> Body | None:
    text.sweep(tree, rows, path)
    body = BODY.read(tree, path, rows)
    if body is BROKEN:
        return None
    declared = request.module.roles[request.role].provides
    for name in body.exports:
        if name not in declared:
            rows.unknown((*path, "provides", name), "what this role provides", declared)
    return body


def _retold(fault: Fault, message: str) -> Fault:
    return Fault(
        message=message,
        file=fault.file,
        line=fault.line,
        column=fault.column,
        source=fault.source,
    )


def _differences(one: Json, other: Json, path: Path) -> Iterator[Path]:
    """Where two trees differ. The order of keys is no difference."""
    if is_table(one) and is_table(other):
        for key in sorted(one.keys() | other.keys()):
            if key in one and key in other:
                yield from _differences(one[key], other[key], (*path, key))
            else:
                yield (*path, key)
    elif is_list(one) and is_list(other) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differences(left, right, (*path, str(index)))
    elif json.dumps(one) != json.dumps(other):
        yield path
