"""One fleet as one text, all the way from documents to a checked plan.

A line `--- PATH` begins each file, so that a fuzzer can change, join and cut any of them.
"""

import re

import msgspec

from keyplane.adapters import directory
from keyplane.adapters.starlark import source
from keyplane.adapters.starlark.runner import Runner
from keyplane.documents.evaluation import Call, Fault, Value
from keyplane.model.plan import Plan
from keyplane.plancheck import plan as plancheck
from keyplane.planner import PlanRequest, explain, explain_key, explain_moves, plan

_FILE = re.compile(rb"^--- ([^\n]*)\n", re.MULTILINE)


def files_of(text: bytes) -> dict[str, bytes]:
    """What stands before the first file is the fleet document."""
    first, *rest = _FILE.split(text)
    found = {"fleet.toml": first} if first.strip() else {}
    for name, content in zip(rest[::2], rest[1::2], strict=True):
        found[name.decode(errors="replace")] = content
    return found


def text_of(files: dict[str, bytes]) -> bytes:
    return b"".join(b"--- %b\n%b\n" % (name.encode(), data) for name, data in files.items())


RUNNER = Runner()
"""The real one, with a process and limits of its own."""
_OURS = ("evaluator itself", "gave no answer", "keyplane:", "_here", "_at(", "_same(")
"""What no row may say: that the trouble is not the document's, or the names of our own code."""


def evaluated(call: Call) -> Value | Fault:
    """Rewritten here as well, where the fuzzer sees which lines run."""
    for number, (file, written) in enumerate(sorted(call.sources.items())):
        source.by_item(file, written, number, traced=True)
        list(source.fact_names(written))
    found = RUNNER.run(call)
    if isinstance(found, Fault):
        said = found.message
        assert not any(ours in said for ours in _OURS if ours not in str(call.sources)), said
        assert found.file in call.sources, found
        assert found.line >= 1, found
        assert found.column >= 1, found
    return found


def run(text: bytes) -> Plan:
    """Plan the fleet, check the plan, read it back, and plan it again. Any trouble raises."""
    files = files_of(text)
    reading = directory.documents_of(files, evaluated)
    old = files.get("previous.json")
    previous = None
    if old is not None:
        try:
            previous = msgspec.json.decode(old, type=Plan)
        except (msgspec.DecodeError, UnicodeDecodeError):
            previous = None
    request = PlanRequest(documents=reading.documents, evaluate=reading.evaluate, previous=previous)
    made = plan(request).plan
    assert plancheck.check(made, reading.documents) == []
    encoded = msgspec.json.encode(made, order="sorted")
    read = msgspec.json.decode(encoded, type=Plan)
    again = PlanRequest(documents=reading.documents, evaluate=reading.evaluate, previous=read)
    kept = plan(again).plan
    assert msgspec.json.encode(kept, order="sorted") == encoded
    for name in list(made.entries)[:3]:
        assert explain.explain(request, name) is not None
        explain_key.inputs(made, name)
        if previous is not None:
            explain_moves.moves(request, previous, made, name)
    return made
