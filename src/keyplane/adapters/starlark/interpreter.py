"""Runs one call in this process, which is to be thrown away afterwards.

Steps are counted here. Memory and time are limited from outside, by whoever made the process:
nothing inside a Starlark run can be trusted to stop.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import starlark

from keyplane.adapters.starlark import source
from keyplane.adapters.starlark.source import GLUE, Source

Json = Any

_STEPS_MAX = 10_000_000
"""The contract's number."""
_STEPS_BETWEEN_CHECKS = 1_000
"""The library asks about this often."""
_CALL_DEPTH_MAX = 200
"""Nested calls; the machine's own stack holds some thousands."""

_GLUE = """
def at(x):
    return {name: getattr(x, name) for name in dir(x)} if type(x) == "struct" else x

def fact(x, name):
    if type(x) == "struct" and hasattr(x, " before"):
        return getattr(x, " before") + name + getattr(x, " after")
    return at(x)[name]

def check(x):
    if type(x) == "dict":
        for one in x.values():
            check(one)
    elif type(x) == "list" or type(x) == "tuple":
        for one in x:
            check(one)
    elif type(x) == "float" and x - x != 0.0:
        fail("the result holds %s, which no document can hold" % x)

def make(tree):
    if "value" in tree:
        return tree["value"]
    if "dict" in tree:
        return {name: make(one) for name, one in tree["dict"].items()}
    return struct(**{name: make(one) for name, one in tree["struct"].items()})
"""
_CALLS = """
load("{document}", _function = "{function}")
load("{glue}", _make = "make", _check = "check")
_table = {{"function": _function}}

def document(key):
    said = _table[key]()
    impls = []
    if type(said) == "dict" and type(said.get("roles")) == "dict":
        roles = {{}}
        for name, role in said["roles"].items():
            if type(role) == "dict" and type(role.get("impl")) == "function":
                impls.append(name)
                role = {{field: one for field, one in role.items() if field != "impl"}}
            roles[name] = role
        said = dict(said)
        said["roles"] = roles
    _evaluated()
    _check(said)
    return [said, impls]

def call(key, role, tree):
    function = _table[key]()["roles"][role]["impl"]
    context = _make(tree)
    said = function(context)
    _evaluated()
    _check(said)
    return [said, []]
"""
_DOCUMENT = "keyplane:document"
"""What our own code loads the called file as; no `load` of a document can mean it."""
_ERROR = re.compile(r"^error: (.*?)\n\s*--> (.*):([0-9]+):([0-9]+)$", re.DOTALL | re.MULTILINE)
_FRAME = re.compile(r"^  \* (.*):([0-9]+), in ", re.MULTILINE)


class LoadError(Exception):
    """A `load` of what may not be loaded, or is not there."""


class Interpreter:
    """One call: the sources, what they define, and the steps that are left."""

    def __init__(self, call: dict[str, Json], here: Callable[[int, int, int], None] | None) -> None:
        self._call = call
        self._here = here
        self._steps = 0
        self._finished = False
        """Whether the document's own work is done, and only its result is looked at."""
        self._loading: list[str] = []
        self._loaded: dict[str, starlark.FrozenModule] = {}
        rewrite = call["role"] is not None or here is not None
        self._sources: dict[str, Source] = {
            file: source.by_item(file, written, number, traced=here is not None)
            if rewrite
            else source.plain(file, written)
            for number, (file, written) in enumerate(sorted(call["sources"].items()))
        }
        extensions = starlark.LibraryExtension
        self._globals = starlark.Globals.extended_by(
            [
                extensions.StructType,
                extensions.Map,
                extensions.Filter,
                extensions.Partial,
                extensions.Json,
                extensions.Print,
            ]
        )
        self._dialect = starlark.Dialect.extended()
        self._dialect.enable_f_strings = True
        self._options = starlark.EvalOptions(
            check_cancelled=self._is_spent, max_callstack_size=_CALL_DEPTH_MAX
        )

    def run(self, evaluated: Callable[[], None]) -> dict[str, Json]:
        """The answer, as `child` sends it. `evaluated` is called before values are converted."""
        try:
            said, impls = self._run(evaluated)
        except (starlark.StarlarkError, TypeError) as error:
            return {"fault": self._fault(str(error))}
        complaint = _shape_complaint(said, self._call["role"]) or _key_complaint(said)
        if complaint is not None:
            return {"fault": self._at_definition(complaint)}
        return {"tree": _given(said), "impls": impls}

    def _run(self, evaluated: Callable[[], None]) -> Json:
        call = self._call
        calls = starlark.Module()

        def finished() -> None:
            self._finished, self._steps = True, 0
            evaluated()

        calls.add_callable("_evaluated", finished)
        self._loaded[_DOCUMENT] = self._evaluated(call["file"])
        text = _CALLS.format(document=_DOCUMENT, function=call["function"], glue=GLUE)
        parsed = starlark.parse(GLUE, text, self._dialect)
        starlark.eval_with(self._options, calls, parsed, self._globals, self._loader())
        frozen = calls.freeze()
        if call["role"] is None:
            return frozen.call_with(self._options, "document", "function").value
        context = self._with_facts(call["context"])
        return frozen.call_with(self._options, "call", "function", call["role"], context).value

    def _loader(self) -> starlark.FileLoader:
        return starlark.FileLoader(self._load)

    def _load(self, label: str) -> starlark.FrozenModule:
        """What `load` gives. All that may be loaded was evaluated before; see `_evaluated`."""
        if label == GLUE:
            return self._glue()
        file = label if label == _DOCUMENT else label.removeprefix("//")
        if file in self._loaded:
            return self._loaded[file]
        if file == label or not file.endswith(".star"):
            raise LoadError(f'{label} is no file to load; write "//PATH.star"')
        if file in self._loading:
            raise LoadError(f"{label} loads itself: {' -> '.join((*self._loading, file))}")
        if any(part in ("", ".", "..") for part in file.split("/")):
            raise LoadError(f"{label} leads out of the fleet directory")
        raise LoadError(f"there is no {label} in the fleet directory")

    def _glue(self) -> starlark.FrozenModule:
        if GLUE not in self._loaded:
            module = starlark.Module()
            parsed = starlark.parse(GLUE, _GLUE, self._dialect)
            starlark.eval(module, parsed, self._globals)
            self._loaded[GLUE] = module.freeze()
        return self._loaded[GLUE]

    def _evaluated(self, file: str) -> starlark.FrozenModule:
        """A file's definitions. What it loads goes first: an error in there is its own then."""
        one = self._sources[file]
        self._loading.append(file)
        parsed = starlark.parse(file, one.text, self._dialect)
        for load in parsed.loads():
            below = load.module_id.removeprefix("//")
            known = below in self._sources and below not in self._loaded
            if known and below != load.module_id and below not in self._loading:
                self._loaded[below] = self._evaluated(below)
        module = starlark.Module()
        if self._here is not None:
            module.add_callable("_here", self._here)
            module.add_callable("_same", _same)
        starlark.eval_with(self._options, module, parsed, self._globals, self._loader())
        self._loading.pop()
        return module.freeze()

    def _is_spent(self) -> bool:
        self._steps += _STEPS_BETWEEN_CHECKS
        return self._steps > _STEPS_MAX

    def _with_facts(self, tree: Json) -> Json:
        """The context with each fact that the sources could name."""
        if "facts" in tree:
            names = {
                name for one in self._sources.values() for name in source.fact_names(one.written)
            }
            return _facts(names, *tree["facts"])
        if "struct" in tree:
            return {"struct": {key: self._with_facts(one) for key, one in tree["struct"].items()}}
        return tree

    def _fault(self, text: str) -> dict[str, Json]:
        """What the library's message says, told of what the author wrote."""
        found = _ERROR.search(text)
        if found is None:
            return self._at_definition(_told(text))
        message, file, line, column = found[1], found[2], int(found[3]), int(found[4])
        if self._finished:
            spent = self._steps > _STEPS_MAX
            told = "the result is too large" if spent else _told_of_result(message)
            return self._at_definition(told)
        spent = self._steps > _STEPS_MAX
        if spent:
            message = f"takes more than {_STEPS_MAX:,} steps"
        if file not in self._sources:
            frames = [frame for frame in _FRAME.finditer(text) if frame[1] in self._sources]
            if not frames:
                return self._at_definition(_told(message), spent=spent)
            file, line, column = frames[-1][1], int(frames[-1][2]), 1
        one = self._sources[file]
        line, column = one.position(line, column)
        return _fault(_told(message), (file, line, column), one.line(line), spent=spent)

    def _at_definition(self, message: str, *, spent: bool = False) -> dict[str, Json]:
        one = self._sources[self._call["file"]]
        function = self._call["function"]
        line, column = source.definition(one.written, function)
        return _fault(message, (one.file, line, column), one.line(line), spent=spent)


def crashed(
    call: dict[str, Json], place: tuple[int, int, int], message: str, *, spent: bool
) -> dict[str, Json]:
    """The fault of a run that ended its process; `place` is the statement that it began last."""
    number, line, column = place
    files = sorted(call["sources"])
    if line == 0 or number >= len(files):
        file = call["file"]
        line, column = source.definition(call["sources"][file], call["function"])
    else:
        file = files[number]
    written = source.plain(file, call["sources"][file])
    return _fault(message, (file, line, column), written.line(line), spent=spent)


def _same(value: Json) -> Json:
    return value


def _fault(message: str, place: tuple[str, int, int], text: str, *, spent: bool) -> dict[str, Json]:
    file, line, column = place
    said = {"message": message, "file": file, "line": line, "column": column, "source": text}
    return {**said, "spent": spent}


def _told(message: str) -> str:
    """The library's words in ours."""
    message = re.sub(r"^(?:[\w.]*\.)?LoadError: ", "", message.strip())
    kind = re.fullmatch(r"Operation `serde::serialize` not supported on type `(.*)`", message)
    if kind is not None:
        return f"the result holds a value of type {kind[1]}, which no document can hold"
    missing = re.match(r"Module has no symbol `(\w+)`(.*)", message)
    if missing is not None:
        return f"there is no `{missing[1]}` to call or load{missing[2]}"
    if message == "Operation `call()` not supported on type `NoneType`":
        return "what should be called is None"
    return message


def _told_of_result(message: str) -> str:
    if "call stack overflow" in message:
        return "the result nests too deeply"
    return message.removeprefix("fail: ")


def _facts(names: Iterable[str], before: str, after: str) -> Json:
    """A struct with each fact by its whole name, and by attributes along its dots."""
    tree: dict[str, Json] = {" before": {"value": before}, " after": {"value": after}}
    for name in sorted(names):
        inner = tree
        *folders, leaf = name.split(".")
        for folder in folders:
            if "struct" not in inner.get(folder, ()):
                inner[folder] = {"struct": {}}
            inner = inner[folder]["struct"]
        inner.setdefault(leaf, {"value": before + name + after})
        tree.setdefault(name, {"value": before + name + after})
    return {"struct": tree}


def _shape_complaint(said: Json, role: str | None) -> str | None:
    if isinstance(said, dict):
        return None
    kind = "None" if said is None else f"a {type(said).__name__}"
    if role is None:
        return f"the function returns {kind}, and a document is a dict"
    return f"the function of role {role} returns {kind}, and has to return a dict"


def _key_complaint(tree: Json) -> str | None:
    if isinstance(tree, dict):
        for key, value in tree.items():  # pyright: ignore[reportUnknownVariableType] - of Json
            if not isinstance(key, str):
                return f"a key of the result is {key!r}, and keys are strings"
            complaint = _key_complaint(value)
            if complaint is not None:
                return complaint
    elif isinstance(tree, list):
        for item in tree:  # pyright: ignore[reportUnknownVariableType] - of Json
            complaint = _key_complaint(item)
            if complaint is not None:
                return complaint
    return None


def _given(tree: Json) -> Json:
    """The tree without the fields that are None: those were not given."""
    if isinstance(tree, dict):
        return {key: _given(value) for key, value in tree.items() if value is not None}  # pyright: ignore[reportUnknownVariableType] - of Json
    if isinstance(tree, list):
        return [_given(item) for item in tree]  # pyright: ignore[reportUnknownVariableType] - of Json
    return tree
