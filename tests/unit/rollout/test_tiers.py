"""In which steps machines switch from one plan to the next."""

from keyplane.model.names import EntryId
from keyplane.rollout.steps import Gap
from keyplane.rollout.tiers import tiers
from tests.unit.rollout.values import digest, edges, names, plan, planned, unit


def gap(consumer: str, provider: str) -> Gap:
    return Gap(EntryId(consumer), EntryId(provider))


def test_two_plans_alike_have_no_steps():
    """What no machine would be told is no step, whatever else moved in the plan."""
    base = plan(web_alpha=planned())
    target = plan(web_alpha=planned(closure=digest("another"), requirements=[{"subject": "x"}]))
    assert tiers(base, [], target, []) == ()


def test_a_move_switches_consumers_between_the_new_and_the_old():
    """PostgreSQL moves: the new one first, then who uses it, and only then is the old one gone."""
    base = plan(pg_alpha=planned(), web_alpha=planned(), web_gamma=planned())
    target = plan(pg_beta=planned(), web_alpha=planned("2"), web_gamma=planned("2"))
    steps = tiers(
        base,
        edges("web_alpha pg_alpha", "web_gamma pg_alpha"),
        target,
        edges("web_alpha pg_beta", "web_gamma pg_beta"),
    )
    assert [names(step.activated) for step in steps] == [["pg_beta"], [], []]
    assert [names(step.changed) for step in steps] == [[], ["web_alpha", "web_gamma"], []]
    assert [names(step.removed) for step in steps] == [[], [], ["pg_alpha"]]
    assert [step.machines for step in steps] == [("beta",), ("alpha", "gamma"), ("alpha",)]


def test_a_move_without_consumers_starts_before_it_stops():
    """An entry that moves runs in its new place before it goes from the old one."""
    steps = tiers(plan(web_alpha=planned()), [], plan(web_beta=planned()), [])
    assert [(names(s.activated), names(s.removed)) for s in steps] == [
        (["web_beta"], []),
        ([], ["web_alpha"]),
    ]


def test_a_move_that_stops_first_is_never_in_two_places():
    """It says so itself; its consumers do without it until they have switched."""
    once = planned(units={"main": unit("1", handover="stop-first")})
    steps = tiers(
        plan(pg_alpha=once, web_gamma=planned()),
        edges("web_gamma pg_alpha"),
        plan(pg_beta=once, web_gamma=planned("2")),
        edges("web_gamma pg_beta"),
    )
    assert [(names(s.removed), names(s.activated), names(s.changed)) for s in steps] == [
        (["pg_alpha"], [], []),
        ([], ["pg_beta"], []),
        ([], [], ["web_gamma"]),
    ]
    assert steps[0].gaps == (gap("web:main@gamma", "pg:main@alpha"),)
    early = "pg:main@alpha is deactivated before pg:main@beta is switched"
    assert steps[0].remarks == (
        f"{early}: it moves, and says handover = stop-first",
        "web:main@gamma does without pg:main@alpha until it has switched",
    )


def test_a_provider_switches_before_its_consumer_by_edges_that_are_no_dependency():
    """An edge counts whether or not it is in the key, and whatever about the consumer changes."""
    base = plan(pg_alpha=planned(), web_beta=planned())
    live = planned(units={"main": unit("1", config_data={"/etc/a": digest("a")})})
    target = plan(pg_alpha=planned("2"), web_beta=live)
    both = edges("web_beta pg_alpha")
    steps = tiers(base, both, target, both)
    assert [names(step.changed) for step in steps] == [["pg_alpha"], []]
    assert [names(step.live) for step in steps] == [[], ["web_beta"]]


def test_consumers_go_before_their_provider():
    """Where both are taken away, nothing is left without what it uses."""
    base = plan(pg_alpha=planned(), web_beta=planned())
    steps = tiers(base, edges("web_beta pg_alpha"), {}, [])
    assert [names(step.removed) for step in steps] == [["web_beta"], ["pg_alpha"]]


def test_a_circle_shares_a_tier():
    """Two that use each other switch at once, and who uses them comes after."""
    base = plan(a_x=planned(), b_y=planned(), c_y=planned())
    target = plan(a_x=planned("2"), b_y=planned("2"), c_y=planned("2"))
    ends = edges("a_x b_y", "b_y a_x", "c_y b_y")
    steps = tiers(base, ends, target, ends)
    assert [names(step.changed) for step in steps] == [["a_x", "b_y"], ["c_y"]]


def test_a_conflict_removes_the_old_first_and_says_what_that_costs():
    """One port, two entries: the old one goes first, and its consumer does without meanwhile."""
    base = plan(old_alpha=planned(listens={"sql": 5432}), web_beta=planned())
    target = plan(new_alpha=planned(module="pg", listens={"sql": 5432}), web_beta=planned("2"))
    steps = tiers(base, edges("web_beta old_alpha"), target, edges("web_beta new_alpha"))
    assert [(names(s.removed), names(s.activated), names(s.changed)) for s in steps] == [
        (["old_alpha"], [], []),
        ([], ["new_alpha"], []),
        ([], [], ["web_beta"]),
    ]
    assert steps[0].gaps == (gap("web:main@beta", "old:main@alpha"),)
    assert "old:main@alpha is deactivated before new:main@alpha" in steps[0].remarks[0]
    assert "both hold port 5432 of alpha" in steps[0].remarks[0]
    assert steps[0].remarks[1:] == (
        "web:main@beta does without old:main@alpha until it has switched",
    )


def test_a_path_that_changes_hands_is_given_up_first():
    """An entry that stays but no longer holds a path switches before the one that takes it."""
    motd = {"motd": {"type": "file", "path": "/etc/motd", "text": "x"}}
    base = plan(z_alpha=planned(resources=motd))
    target = plan(z_alpha=planned("2"), a_alpha=planned(resources=motd))
    steps = tiers(base, [], target, [])
    assert [(names(s.changed), names(s.activated)) for s in steps] == [
        (["z_alpha"], []),
        ([], ["a_alpha"]),
    ]


def test_entries_that_swap_what_they_hold_share_a_tier():
    """Two on one machine that exchange their ports can only switch together."""
    base = plan(a_x=planned("1", listens={"p": 1}), b_x=planned("1", listens={"p": 2}))
    target = plan(a_x=planned("2", listens={"p": 2}), b_x=planned("2", listens={"p": 1}))
    steps = tiers(base, [], target, [])
    assert [names(step.changed) for step in steps] == [["a_x", "b_x"]]


def test_the_same_role_of_another_instance_goes_first_unless_it_is_used():
    """A claim is not in a plan: the old one goes first, but not from under its consumers."""
    base, target = plan(old_x=planned()), plan(new_x=planned())
    assert [names(step.removed) for step in tiers(base, [], target, [])] == [["old_x"], []]
    base, target = base | plan(web_y=planned()), target | plan(web_y=planned("2"))
    steps = tiers(base, edges("web_y old_x"), target, edges("web_y new_x"))
    assert [names(step.removed) for step in steps] == [[], [], ["old_x"]]
    assert all(step.gaps == () for step in steps)


def test_grants_are_tightened_once_the_old_consumer_has_gone():
    """A provider that loses a consumer keeps its grant until the consumer has switched."""
    base = plan(pg_x=planned(grants={"/g": digest("web")}), web_y=planned())
    target = plan(pg_x=planned(grants={"/g": digest("none")}), mine_y=planned(), web_y=planned("2"))
    steps = tiers(base, edges("web_y pg_x"), target, edges("web_y mine_y"))
    order = [(names(s.switched), names(s.tightened)) for s in steps]
    assert order == [(["mine_y", "pg_x"], []), (["web_y"], []), ([], ["pg_x"])]


def test_an_entry_of_which_only_the_edges_moved_still_holds_its_old_provider():
    """Nothing is sent to it, but what it used is removed after what it uses now is there."""
    base = plan(a_x=planned(), web_y=planned())
    target = plan(b_z=planned(module="other"), web_y=planned())
    steps = tiers(base, edges("web_y a_x"), target, edges("web_y b_z"))
    assert [(names(s.activated), names(s.removed), names(s.rewired)) for s in steps] == [
        (["b_z"], [], []),
        ([], ["a_x"], ["web_y"]),
    ]


def test_what_is_recorded_is_held_by_nothing_of_its_own():
    """Neither is what it takes away later: whoever looks for the first in line comes to an end."""
    base = plan(pg_x=planned(grants={"/g": digest("web")}), web_y=planned())
    target = plan(
        pg_x=planned("2", grants={"/g": digest("none")}), mine_y=planned(), web_y=planned("2")
    )
    pg, web = sorted(target.keys() - {"mine:main@y"})
    steps = tiers(
        base, edges("web_y pg_x"), target, edges("web_y mine_y"), recorded={EntryId(pg): ""}
    )
    holds = {(hold.entry, hold.by) for step in steps for hold in step.holds}
    assert (pg, None) in holds
    assert all(entry != by for entry, by in holds)
    assert len({entry for entry, _ in holds}) == len(holds)
    assert web not in {entry for entry, _ in holds}
