"""What is said of a machine that is to be emptied: what moves, what stays, and what helps."""

from keyplane.model.fleet import Fleet, Instance, Machine, Placement, Strategy
from keyplane.model.names import EntryId, MachineName
from keyplane.parts import emptying

ALPHA = MachineName("alpha")


def placed(**placements: Placement) -> Fleet:
    instances = {
        name: Instance(name=name, module=name, placement={"main": each})
        for name, each in placements.items()
    }
    machines = {"alpha": Machine(name="alpha", address="10.0.0.1")}
    return Fleet(name="arena", file="fleet.toml", machines=machines, instances=instances)


FLEET = placed(
    counted=Placement(strategy=Strategy.COUNT, count=1),
    named=Placement(strategy=Strategy.EVERY, machines=("alpha",)),
    everywhere=Placement(strategy=Strategy.EVERY),
    tagged=Placement(strategy=Strategy.EVERY, tags=("eu",)),
)


def here(*instances: str) -> list[EntryId]:
    return emptying.on((EntryId(f"{each}:main@alpha") for each in instances), ALPHA)


def ways(*instances: str) -> list[str]:
    *found, last = emptying.ways(FLEET, ALPHA, here(*instances))
    assert last == "`keyplane machine remove alpha --lost` if it will not be back"
    return found


def test_a_drain_is_named_where_it_moves_something() -> None:
    assert ways("counted") == ["`keyplane drain alpha` moves counted:main@alpha elsewhere"]


def test_what_is_placed_by_name_is_moved_by_name() -> None:
    """A drain would move nothing of it."""
    (said,) = ways("named")
    assert "`keyplane assign named:main MACHINE`" in said
    assert "`keyplane unassign named:main alpha`" in said


def test_what_stands_wherever_it_fits_goes_with_the_machine() -> None:
    (said,) = ways("everywhere", "tagged")
    assert said.startswith("everywhere:main@alpha, tagged:main@alpha: placed on all machines, or")
    assert "no drain moves" in said


def test_each_kind_has_its_way() -> None:
    assert len(ways("counted", "everywhere", "named", "implied")) == 3


def test_a_drain_says_what_moves_and_what_stays() -> None:
    will, said = emptying.drained(FLEET, ALPHA, here("counted", "named"))
    assert will.startswith("what is placed on alpha by count will go elsewhere: counted:main@alpha")
    assert "otherwise will stay: named:main@alpha (`keyplane unassign INSTANCE alpha`" in will
    assert said == "what is placed on alpha by count goes elsewhere"


def test_a_drain_that_moves_nothing_says_so() -> None:
    will, said = emptying.drained(FLEET, ALPHA, here("named"))
    assert will.startswith("nothing is placed on alpha by count, and nothing new will be; what")
    assert said == "nothing is placed on alpha by count, and nothing new is"


def test_entries_of_other_machines_are_not_its_own() -> None:
    assert emptying.on([EntryId("a:main@beta"), EntryId("a:main@alpha")], ALPHA) == [
        EntryId("a:main@alpha")
    ]
