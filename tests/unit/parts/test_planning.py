"""From a text to what an apply of it would do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from keyplane.adapters import directory
from keyplane.documents.reading import Reading
from keyplane.model.names import MachineName
from keyplane.parts.control_messages import Text
from keyplane.parts.planning import Base, Planned, Planning
from keyplane.ports.inventory import PlannedEntry, StoredPlan
from keyplane.ports.store import Pack


def read(files: Mapping[str, bytes]) -> Reading:
    def nothing_to_run(*_: object) -> Any:
        pytest.fail("no document here is a program")

    return directory.documents_of(files, nothing_to_run)


def archive(_: Mapping[str, bytes], __: str, ___: str) -> Pack:
    pytest.fail("planning packs nothing")


NOTHING = Base(entries={}, edges=[], plan=None)


def planned(files: Mapping[str, bytes]) -> Planned:
    return Planning(read=read, archive=archive).plan(Text(files=dict(files)), None, NOTHING, (), {})


def test_a_text_without_a_fleet_is_refused() -> None:
    """It asks for nothing, and would stop all that runs, where a file was only mislaid."""
    found = planned({"flet.toml": b'fleet = "arena"'})
    assert found.refused
    assert [row.code for row in found.rows] == ["unreadable"]


def test_a_fleet_of_nothing_is_no_error() -> None:
    """It says that nothing is wanted."""
    assert planned({"fleet.toml": b'fleet = "arena"'}).rows == []


def test_a_fleet_that_cannot_be_read_is_told_of_by_its_own_rows_alone() -> None:
    """A missing name is no missing file."""
    found = planned({"fleet.toml": b""})
    assert found.refused
    assert "holds no fleet.toml" not in " ".join(row.message for row in found.rows)


MODULE = b"""
module = "big"
version = "1"
[roles.main.units.one]
kind = "process"
command = ["sleep", "60"]
reload = { signal = "HUP" }
configData."/etc/big" = { file = "big" }
[roles.main.resources.text]
type = "file"
path = "/etc/text"
text = "%s"
"""
FLEET = b"""
fleet = "arena"
[machines.alpha]
address = "10.0.0.1"
local = true
[instances.big]
module = "big"
placement.every.main = {}
"""


@pytest.mark.parametrize(
    ("file", "text", "fits"),
    [(1, 1, True), (5_000_000, 1, True), (9_000_000, 1, False), (4_500_000, 4_500_000, False)],
)
def test_what_a_machine_cannot_be_sent_is_refused_before_it_is_the_target(
    file: int, text: int, fits: bool
) -> None:
    """By the machine's name, with its size; contents and texts count together."""
    found = planned(
        {
            "fleet.toml": FLEET,
            "modules/big/module.toml": MODULE % (b"t" * text),
            "modules/big/big": b"f" * file,
        }
    )
    assert found.refused is not fits
    assert [row.subject for row in found.rows if row.code == "declaration-too-large"] == (
        [] if fits else ["alpha"]
    )


ONE_APP = {
    "fleet.toml": b"""
fleet = "arena"
[machines.alpha]
address = "10.0.0.1"
[instances.app]
module = "app"
placement.every.main = {}
""",
    "modules/app/module.toml": b"""
module = "app"
version = "1"
[roles.main.units.main]
kind = "process"
command = ["/bin/true"]
""",
}


def test_what_was_proposed_is_not_planned_again_by_its_apply() -> None:
    """And whatever it was made from has to be the same: text, target, what is declared, who was heard."""
    readings: list[object] = []

    def counted(files: Mapping[str, bytes]) -> Reading:
        readings.append(files)
        return read(files)

    planning = Planning(read=counted, archive=archive)
    alpha = MachineName("alpha")
    first = planning.plan(Text(files=ONE_APP), None, NOTHING, [alpha], {})
    assert planning.plan(Text(files=dict(ONE_APP)), None, NOTHING, [alpha], {}) is first
    assert len(readings) == 1
    stored = StoredPlan(plan=first.plan, revision=1, entries=first.entries, contents={})
    base = Base(entries=first.entries, edges=first.plan.edges, plan=first.plan)
    entry = next(iter(first.entries.values()))
    moved = msgspec.structs.replace(entry.entry, version="2")
    others = {name: PlannedEntry(entry=moved) for name in first.entries}
    edited = {**ONE_APP, "modules/app/module.toml": ONE_APP["modules/app/module.toml"] + b"# more"}
    for asked in (
        (Text(files=ONE_APP), None, NOTHING, []),
        (Text(files=ONE_APP), stored, NOTHING, []),
        (Text(files=ONE_APP), stored, base, []),
        (Text(files=ONE_APP), stored, replace(base, entries=others), []),
        (Text(files=edited), stored, replace(base, entries=others), []),
    ):
        before = len(readings)
        found = planning.plan(*asked, {})
        assert len(readings) == before + 1
        fresh = Planning(read=read, archive=archive).plan(*asked, {})
        assert (found.plan, found.rows, found.diff) == (fresh.plan, fresh.rows, fresh.diff)
    planning.drop()
    planning.plan(*asked, {})
    assert len(readings) == 7


def test_an_entry_knows_which_of_its_listens_are_of_udp() -> None:
    """What its machine is told, and its plan does not say."""
    module = b"""
module = "game"
version = "1"
[roles.main.listens]
game = { protocol = "udp" }
query = { protocol = "udp", port = 27015 }
api = { protocol = "tcp" }
[roles.main.units.one]
kind = "process"
command = ["true"]
"""
    fleet = b"""
fleet = "f"
machines.alpha = { address = "127.77.0.1", local = true }
[instances.game]
module = "game"
placement.every.main = {}
"""
    found = planned({"fleet.toml": fleet, "modules/game/module.toml": module})
    assert not found.refused
    (entry,) = found.entries.values()
    assert entry.udp == ("game", "query")
    assert b"udp" not in msgspec.json.encode(found.plan)
