"""What the Starlark documents of a fleet may take together."""

from collections.abc import Callable

from keyplane.documents import reading, spending
from keyplane.documents.evaluation import Call, Fault, Value
from keyplane.model.diagnostic import Diagnostic
from tests.unit.documents.fleet_files import FLEET, Files

NAMES = tuple("abcdefgh")
FILE = "modules/{}/module.star"


def read(
    run: Callable[[Call], Value | Fault], *names: str
) -> tuple[list[str], dict[str, Diagnostic]]:
    """The files that were run, and the row of each module that has one."""
    ran: list[str] = []

    def running(call: Call) -> Value | Fault:
        ran.append(call.file)
        return run(call)

    files = {"fleet.toml": FLEET, **{FILE.format(name): "x = 1" for name in names}}
    rows = reading.read(Files(files), {}, running).documents.diagnostics
    return ran, {row.subject: row for row in rows}


def well(call: Call, used_ms: int = 1) -> Value:
    name = call.file.split("/")[1]
    return Value(tree={"module": name, "version": "1"}, used_ms=used_ms)


def endless(call: Call) -> Fault:
    return Fault(message="takes long", file=call.file, line=1, column=1, source="", spent=True)


def test_after_four_documents_without_an_end_no_other_is_run() -> None:
    """Each of those says which four they were."""
    ran, rows = read(lambda call: well(call) if "/b/" in call.file else endless(call), *NAMES)
    assert ran == [FILE.format(name) for name in "abcde"]
    assert rows.keys() == {FILE.format(name) for name in "acdefgh"}
    named = "modules/a/module.star, modules/c/module.star, modules/d/module.star and modules/e/module.star"
    for name in "fgh":
        row = rows[FILE.format(name)]
        assert row.code == "starlark"
        assert row.message == (
            f"{FILE.format(name)}: it was not run, as {named} came to a limit before it"
        )
        assert row.resolution == ("mend those first",)


def test_three_documents_without_an_end_keep_nothing_from_the_others() -> None:
    ran, rows = read(lambda call: endless(call) if call.file < "modules/d" else well(call), *NAMES)
    assert len(ran) == len(NAMES)
    assert len(rows) == 3


def test_all_together_have_a_budget_of_processor_time() -> None:
    """Whatever each of them keeps to; those that took most are named."""
    third = spending.USED_MAX_MS // 3
    took = {"a": third + 1, "b": 5, "c": third - 2, "d": third}
    ran, rows = read(lambda call: well(call, took[call.file.split("/")[1]]), *"abcd")
    assert (len(ran), rows) == (4, {})
    took["b"] = 9
    ran, rows = read(lambda call: well(call, took.get(call.file.split("/")[1], 1)), *"abcde")
    assert len(ran) == 4
    (row,) = rows.values()
    named = "modules/a/module.star, modules/d/module.star and modules/c/module.star"
    assert f"took 60 s of processor time together, most of it {named}" in row.message
