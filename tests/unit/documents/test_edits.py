"""What a setting, an assignment and a pin change of a fleet's values."""

from typing import Any

import pytest

from keyplane.adapters import directory
from keyplane.documents import edits
from keyplane.documents.edits import Edit, Put, Refused, Remove
from keyplane.model.documents import Documents

FLEET = b"""
fleet = "arena"
[machines.alpha]
address = "10.0.0.1"
tags = ["eu"]
pins.store = "beta"
[machines.beta]
address = "10.0.0.2"
[instances.game]
module = "game"
settings.server.slots = 32
placement.every.server = { machines = ["alpha"] }
placement.every.web = { tags = ["eu"] }
placement.count.bot = { count = 1 }
[instances.page]
module = "page"
placement.every.main = {}
"""
GAME = b"""
module = "game"
version = "1"
[roles.server.settings]
slots = { type = "integer", default = 16 }
motd = { type = "string", default = "" }
open = { type = "boolean", default = true }
rate = { type = "number", default = 1.5 }
maps = { type = "list", default = [] }
[roles.web.settings]
motd = { type = "string", default = "" }
[roles.bot]
requires = []
"""
PAGE = b'module = "page"\nversion = "1"\n[roles.main]\nrequires = []\n'


def documents() -> Documents:
    def nothing_to_run(*_: object) -> Any:
        pytest.fail("no document here is a program")

    files = {
        "fleet.toml": FLEET,
        "modules/game/module.toml": GAME,
        "modules/page/module.toml": PAGE,
        "modules/spare/module.toml": PAGE.replace(b'"page"', b'"spare"'),
    }
    return directory.documents_of(files, nothing_to_run).documents


def setting(*path: str) -> tuple[str, ...]:
    return ("instances", "game", "settings", *path)


@pytest.mark.parametrize(
    ("place", "text", "path", "value"),
    [
        ("game.server.slots", "64", setting("server", "slots"), 64),
        ("game.slots", "64", setting("server", "slots"), 64),
        ("game.server.motd", "64", setting("server", "motd"), "64"),
        ("game.web.motd", "true", setting("web", "motd"), "true"),
        ("game.open", "false", setting("server", "open"), False),
        ("game.rate", "2", setting("server", "rate"), 2),
        ("game.rate", "2.5", setting("server", "rate"), 2.5),
        ("game.maps", '["a", "b"]', setting("server", "maps"), ["a", "b"]),
    ],
)
def test_a_value_is_of_the_type_that_its_setting_has(
    place: str, text: str, path: tuple[str, ...], value: object
) -> None:
    """A role need not be named where one alone has the setting."""
    made = edits.set_value(documents(), place, text)
    assert isinstance(made, Edit)
    (step,) = made.steps
    assert step == Put(path, value)
    assert isinstance(step, Put)
    assert type(step.value) is type(value)


@pytest.mark.parametrize(
    ("place", "text", "said"),
    [
        ("game.slots", "many", '"many" is no integer'),
        ("game.slots", "6.5", "is no integer"),
        ("game.slots", "true", "is no integer"),
        ("game.open", "1", "is neither true nor false"),
        ("game.maps", "a", 'is no list, such as ["a", "b"]'),
        ("game.rate", "NaN", "is no number"),
        ("game.rate", "[" * 100_000, "is no number"),
        ("game.motd", "x", "say game.server.motd or game.web.motd"),
        ("game.slotz", "1", "did you mean slots?"),
        ("gane.slots", "1", "did you mean game?"),
        ("game", "1", "is no INSTANCE[.ROLE].SETTING"),
        ("a.b.c.d", "1", "is no INSTANCE[.ROLE].SETTING"),
    ],
)
def test_what_cannot_be_set_says_why(place: str, text: str, said: str) -> None:
    made = edits.set_value(documents(), place, text)
    assert isinstance(made, Refused)
    assert said in made.message


def test_a_setting_that_the_module_does_not_have_is_left_to_the_planner() -> None:
    """Its row knows the nearest name, and the whole module."""
    made = edits.set_value(documents(), "game.server.nope", "5")
    assert made == Edit(
        steps=(Put(setting("server", "nope"), 5),),
        will="game.server.nope will be 5",
        said="game.server.nope = 5",
    )


def test_the_value_before_is_told() -> None:
    made = edits.set_value(documents(), "game.slots", "64")
    assert isinstance(made, Edit)
    assert made.will == "game.server.slots will be 64 (is 32)"
    assert made.said == "game.server.slots = 64 (was 32)"


def test_a_value_that_is_there_already_is_no_edit() -> None:
    made = edits.set_value(documents(), "game.slots", "32")
    assert made == Edit(steps=(), said="game.server.slots = 32 already")


def test_whoever_is_asked_is_told_what_will_be_and_not_that_it_is() -> None:
    """Each edit has a sentence for before it is done, and one for after."""
    made = (
        edits.set_value(documents(), "game.slots", "64"),
        edits.set_value(documents(), "page.nope", "64"),
        edits.assign(documents(), "game:server", "beta"),
        edits.assign(documents(), "spare", "beta"),
        edits.unassign(documents(), "game:server", "alpha"),
        edits.pin(documents(), "beta", "store", "alpha"),
        edits.pin(documents(), "alpha", "store", "alpha"),
        edits.unpin(documents(), "alpha", "store"),
        edits.remove_machine(documents(), "alpha"),
        edits.remove_machine(documents(), "beta"),
    )
    for each in made:
        if isinstance(each, Refused):
            continue
        parts = each.will.split("; ")
        assert all(" will " in part for part in parts), each.will
        assert len(parts) == len(each.said.split("; ")), each.said
        assert " will " not in each.said
    assert sum(isinstance(each, Edit) for each in made) >= len(made) - 1


MACHINES = ("instances", "game", "placement", "every", "server", "machines")


def test_a_machine_joins_those_that_are_named() -> None:
    made = edits.assign(documents(), "game:server", "beta")
    assert isinstance(made, Edit)
    assert made.steps == (Put(MACHINES, ["alpha", "beta"]),)
    assert edits.assign(documents(), "game:server", "alpha") == Edit(
        steps=(), said="game:server is assigned to alpha already"
    )


def test_a_machine_leaves_those_that_are_named() -> None:
    """The last one too: a role may be placed nowhere."""
    made = edits.unassign(documents(), "game:server", "alpha")
    assert isinstance(made, Edit)
    assert made.steps == (Put(MACHINES, []),)
    assert edits.unassign(documents(), "game:server", "beta") == Edit(
        steps=(), said="game:server is not assigned to beta"
    )


def test_a_module_without_an_instance_gets_one_of_its_name() -> None:
    made = edits.assign(documents(), "spare", "beta")
    assert isinstance(made, Edit)
    assert made.steps == (
        Put(("instances", "spare", "module"), "spare"),
        Put(("instances", "spare", "placement", "every", "main"), {"machines": ["beta"]}),
    )


@pytest.mark.parametrize(
    ("named", "machine", "said"),
    [
        ("game", "beta", "`keyplane assign game:server beta`"),
        ("game:sever", "beta", "did you mean server?"),
        ("gamee:server", "beta", "did you mean game?"),
        ("game:server", "bета", "the machines are alpha, beta"),
        ("game:web", "beta", "placed by the tags eu; give or take a tag, or edit instances.game"),
        ("game:bot", "beta", "chosen by count (1); edit instances.game.placement.count.bot in"),
    ],
)
def test_what_cannot_be_assigned_says_why_and_what_to_do(
    named: str, machine: str, said: str
) -> None:
    made = edits.assign(documents(), named, machine)
    assert isinstance(made, Refused)
    assert said in made.message


def test_what_tags_and_all_machines_place_is_not_unassigned_by_name() -> None:
    """Where it stands nothing is edited; where it does not, there is nothing to do."""
    made = edits.unassign(documents(), "page", "beta")
    assert isinstance(made, Refused)
    assert "it is placed on all machines; edit instances.page.placement.every.main" in made.message
    assert isinstance(edits.unassign(documents(), "game:web", "alpha"), Refused)
    nothing = edits.unassign(documents(), "game:web", "beta")
    assert isinstance(nothing, Edit)
    assert nothing.steps == ()
    already = edits.assign(documents(), "page", "beta")
    assert isinstance(already, Edit)
    assert already.steps == ()


def test_a_pin_is_put_and_removed() -> None:
    made = edits.pin(documents(), "beta", "store", "alpha")
    assert isinstance(made, Edit)
    assert made.steps == (Put(("machines", "beta", "pins", "store"), "alpha"),)
    again = edits.pin(documents(), "alpha", "store", "beta")
    assert isinstance(again, Edit)
    assert again.steps == ()
    moved = edits.pin(documents(), "alpha", "store", "alpha")
    assert isinstance(moved, Edit)
    assert moved.said == "on alpha, store is answered from alpha (was beta)"
    gone = edits.unpin(documents(), "alpha", "store")
    assert isinstance(gone, Edit)
    assert gone.steps == (Remove(("machines", "alpha", "pins", "store")),)
    nothing = edits.unpin(documents(), "beta", "store")
    assert nothing == Edit(steps=(), said="store is not pinned on beta")
    assert isinstance(edits.pin(documents(), "beta", "store", "gamma"), Refused)
    assert isinstance(edits.unpin(documents(), "gamma", "store"), Refused)


def test_a_machine_leaves_with_its_assignments_and_every_pin() -> None:
    """Of it, which go with it, and to it, which stand at others."""
    found = edits.remove_machine(documents(), "alpha")
    assert isinstance(found, Edit)
    assert found.steps == (
        Put(("instances", "game", "placement", "every", "server", "machines"), []),
        Remove(("machines", "alpha")),
    )
    found = edits.remove_machine(documents(), "beta")
    assert isinstance(found, Edit)
    assert found.steps == (
        Remove(("machines", "alpha", "pins", "store")),
        Remove(("machines", "beta")),
    )
    assert "on alpha, store is no longer pinned to it" in found.said
    assert isinstance(edits.remove_machine(documents(), "gamma"), Refused)
