"""What a document in Starlark can do, and how its trouble is told."""

import dataclasses
import json
import mmap
import resource
from collections.abc import Iterator

import pytest

from keyplane.adapters.starlark import child, interpreter
from keyplane.adapters.starlark.runner import Runner
from keyplane.documents.evaluation import Call, Fault, Value

FILE = "modules/solo/module.star"


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as runner:
        yield runner


def run(runner: Runner, text: str, **others: str) -> Value | Fault:
    sources = {FILE: text, **{f"lib/{name}.star": other for name, other in others.items()}}
    return runner.run(Call(sources=sources, file=FILE, function="module"))


def fault(runner: Runner, text: str, **others: str) -> Fault:
    found = run(runner, text, **others)
    assert isinstance(found, Fault), found
    return found


def test_a_document_is_what_its_function_returns(runner: Runner):
    """Tuples are lists, structs are tables, None is a field not given, and loads are resolved."""
    found = run(
        runner,
        'load("//lib/x.star", "pair")\n'
        "def module():\n"
        "    return {'a': pair(1), 'b': None, 'c': struct(d = 1.5), 'e': [True, 'č']}\n",
        x="def pair(n):\n    return (n, n + 1)\n",
    )
    assert found == Value(tree={"a": [1, 2], "c": {"d": 1.5}, "e": [True, "č"]})


def test_roles_with_impl_are_named_and_the_function_left_out(runner: Runner):
    """The tree holds plain values only."""
    found = run(
        runner,
        "def f(ctx):\n    return {}\n"
        "def module():\n    return {'roles': {'a': {'impl': f, 'uses': {}}, 'b': {'units': {}}}}\n",
    )
    assert found == Value(tree={"roles": {"a": {"uses": {}}, "b": {"units": {}}}}, impls=("a",))


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("def module():\n    y = 1\n    return {}['nothing']\n", 3, 12, "nothing"),
        ("x = 1\n\ndef module(:\n    return {}\n", 3, 12, "Parse error"),
        ("X = open('/etc/hostname')\n", 1, 5, "open"),
        ("def module():\n    fail('no ' + 'way')\n", 2, 5, "no way"),
        ("def module():\n    return {'a': len}\n", 1, 1, "of type function"),
        ("def module():\n    return {1: 2}\n", 1, 1, "keys are strings"),
        ("x = 1\nmodule = 5\n", 2, 1, "not supported on type `int`"),
        ("load('//lib/none.star', 'x')\n", 1, 1, "//lib/none.star"),
        ("load('//../x.star', 'x')\n", 1, 1, "leads out"),
        ("load('/etc/passwd', 'x')\n", 1, 1, "/etc/passwd"),
        ("load('keyplane:glue', 'x')\n", 1, 23, "x"),
        (
            "def f(n):\n    return f(n + 1)\ndef module():\n    return f(0)\n",
            2,
            12,
            "stack overflow",
        ),
    ],
)
def test_trouble_is_told_with_file_line_column_and_the_line(
    runner: Runner, text: str, line: int, column: int, message: str
):
    """Each fault points at what the author wrote."""
    found = fault(runner, text)
    assert (found.file, found.line, found.column) == (FILE, line, column)
    assert found.source == text.splitlines()[line - 1]
    assert message in found.message
    assert "glue" not in found.message


def test_trouble_in_a_loaded_file_is_told_there(runner: Runner):
    """The file that is wrong is named, not the one that loads it."""
    found = fault(runner, "load('//lib/x.star', 'a')\n", x="\na = nope\n")
    assert (found.file, found.line, found.column) == ("lib/x.star", 2, 5)


def test_a_circle_of_loads_is_a_fault(runner: Runner):
    """It names the circle."""
    found = fault(
        runner,
        "load('//lib/x.star', 'a')\n",
        x="load('//lib/y.star', 'a')\n",
        y="load('//lib/x.star', 'a')\n",
    )
    assert "loads itself" in found.message


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("[i for i in range(1000000000)]", "64 MiB"),
        ("[i for i in range(1000000000) if i < 0]", "10,000,000 steps"),
        ("len(str(sorted(range(1000000)) and 3 << 50000000))", ""),
        ("'x' * (1 << 40)", ""),
        ("'x' * (200 << 20)", "64 MiB"),
        ("[0] * 100000000", "64 MiB"),
    ],
)
def test_too_long_and_too_large_are_faults_with_a_place(
    runner: Runner, statement: str, message: str
):
    """Neither ends the evaluator: the next document is read."""
    found = fault(runner, f"def module():\n    a = 1\n    b = {statement}\n    return {{'b': b}}\n")
    assert (found.file, found.line) == (FILE, 3)
    assert message in found.message
    assert isinstance(run(runner, "def module():\n    return {}\n"), Value)


def test_memory_that_grows_in_a_loop_is_a_fault_with_a_place(runner: Runner):
    """Doubling passes every check between two steps."""
    found = fault(
        runner,
        "def module():\n    s = 'x'\n    for i in range(60):\n        s = s + s\n    return {'s': s}\n",
    )
    assert (found.line, found.column) == (4, 9)
    assert "64 MiB" in found.message


@pytest.mark.parametrize(
    "loop", ["s = s * s", "t = s * s\n        s = t + 1"], ids=["one-statement", "two-statements"]
)
def test_an_operation_without_end_is_found_in_little_more_than_its_limit(loop: str):
    """Looking for its place does not take the whole time once more.

    But where who looks stands still meanwhile: one of a few comes to its turns.
    """
    used_s: list[float] = []
    while not used_s or (used_s[-1] >= 1.7 * child.CPU_MAX_S and len(used_s) < 5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        with Runner() as runner:
            found = fault(
                runner,
                "def module():\n    s = 3\n    for i in range(60):\n        "
                f"{loop}\n    return {{'s': s}}\n",
            )
        assert "processor time" in found.message
        assert found.line in (4, 5)
        used_s.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    assert min(used_s) < 1.7 * child.CPU_MAX_S


def test_the_end_of_a_run_is_told_as_it_was_not_as_its_marked_twin_ends(runner: Runner):
    """Marks make every statement slow: what had too little memory would be out of time."""
    text = "def module():\n    x = 0\n    for i in range(3000000):\n        x = x + i\n    return {'a': x}\n"
    found = fault(runner, text)
    assert "64 MiB" in found.message
    assert found.line == 4


def test_a_bug_of_the_evaluator_is_told_as_one(monkeypatch: pytest.MonkeyPatch):
    """Nobody is sent to look for a document that is too large where there is none."""

    def broken(*_: object) -> None:
        raise KeyError("none")

    monkeypatch.setattr(interpreter.Interpreter, "run", broken)
    call = Call(sources={FILE: "def module():\n    return {}\n"}, file=FILE, function="module")
    shared = mmap.mmap(-1, child._EVALUATED + 1)
    answer = json.loads(child._answer(dataclasses.asdict(call), shared))
    assert "evaluator itself" in answer["fault"]["message"]


def test_a_value_that_holds_itself_is_a_fault(runner: Runner):
    """No document can hold it, and it does not end the evaluator."""
    found = fault(runner, "def module():\n    a = []\n    a.append(a)\n    return {'a': a}\n")
    assert found.file == FILE
    assert isinstance(run(runner, "def module():\n    return {}\n"), Value)


def test_text_that_nests_without_end_is_a_fault(runner: Runner):
    """The parser's own stack is no way out."""
    found = fault(runner, "x = " + "[" * 100_000 + "]" * 100_000)
    assert found.file == FILE


def test_forty_mebibytes_are_within_the_budget(runner: Runner):
    """The limit is of the document; what its conversion takes is not counted."""
    found = run(runner, "def module():\n    return {'a': 'x' * (20 << 20)}\n")
    assert isinstance(found, Value)


def test_nothing_of_one_call_is_left_for_the_next(runner: Runner):
    """Equal calls have equal answers."""
    text = "a = []\ndef module():\n    return {'n': len(a)}\n"
    assert run(runner, text) == run(runner, text) == Value(tree={"n": 0})


def test_a_closed_runner_starts_again():
    """Closing lets the process go; it is no end."""
    runner = Runner()
    first = run(runner, "def module():\n    return {'a': 1}\n")
    runner.close()
    second = run(runner, "def module():\n    return {'a': 2}\n")
    runner.close()
    assert (first, second) == (Value(tree={"a": 1}), Value(tree={"a": 2}))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def module():\n    return None\n", "returns None"),
        ("def module():\n    return []\n", "returns a list"),
        ('def module():\n    return {"a": [float("nan")]}\n', "nan"),
        ('def module():\n    return {"a": {"b": float("-inf")}}\n', "-inf"),
        (
            'def module():\n    x = ["x"]\n    for i in range(40):\n        x = [x, x]\n    return {"a": x}\n',
            "too large",
        ),
        (
            "def module():\n    x = []\n    for i in range(300):\n        x = [x]\n    return {1: x}\n",
            "nests",
        ),
    ],
)
def test_a_result_that_is_no_document_is_a_fault(runner: Runner, text: str, told: str):
    """It is told at the function that returned it."""
    found = fault(runner, text)
    assert told in found.message
    assert (found.file, found.line) == ("modules/solo/module.star", 1)


def test_an_answer_says_what_processor_time_it_took(runner: Runner):
    quick = [run(runner, f"def module():\n    return {{'quick': {n}}}\n") for n in range(5)]
    long = run(
        runner,
        "def module():\n    s = 0\n    for i in range(9000000):\n        s = i\n    return {'long': s}\n",
    )
    assert isinstance(long, Value)
    # Of the quick ones each may have been slow to begin.
    assert 0 <= min(each.used_ms for each in quick) < long.used_ms
