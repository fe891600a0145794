"""What machines are in the middle of a rollout."""

import json

from keyplane.model.names import EntryId, MachineName
from keyplane.rollout.mixture import mix, mix_edges
from keyplane.rollout.tiers import tiers
from tests.unit.rollout.values import digest, edges, names, plan, planned


def contributions(*consumers: dict[str, str]) -> tuple[str, bytes]:
    content = json.dumps({"consumers": list(consumers)}).encode()
    return digest(content.decode()), content


def consumer(instance: str, machine: str, login: str = "x") -> dict[str, str]:
    return {
        "instance": instance,
        "role": "main",
        "slot": "db",
        "machine": machine,
        "login": login,
    }


def test_entries_stay_as_they_were_until_their_step_is_sent():
    """While PostgreSQL moves, both run, and the consumer changes sides in between."""
    base = plan(pg_alpha=planned(), web_alpha=planned())
    target = plan(pg_beta=planned(), web_alpha=planned("2"))
    old, new = edges("web_alpha pg_alpha"), edges("web_alpha pg_beta")
    steps = tiers(base, old, target, new)
    mixtures = [mix(base, target, steps, sent, {}).entries for sent in range(4)]
    assert [sorted(names(m)) for m in mixtures] == [
        ["pg_alpha", "web_alpha"],
        ["pg_alpha", "pg_beta", "web_alpha"],
        ["pg_alpha", "pg_beta", "web_alpha"],
        ["pg_beta", "web_alpha"],
    ]
    web = EntryId("web:main@alpha")
    assert [m[web].entry.key for m in mixtures] == [digest(k) for k in ("1", "1", "2", "2")]
    users = [[e.provider for e in mix_edges(old, new, steps, sent)] for sent in range(4)]
    assert users == [["pg:main@alpha"]] * 2 + [["pg:main@beta"]] * 2


def test_grants_are_of_both_until_they_are_tightened():
    """The new consumer is known before it switches, the old one until it has gone."""
    old, old_bytes = contributions(consumer("web", "y"), consumer("chat", "y", "before"))
    new, new_bytes = contributions(consumer("web", "z"), consumer("chat", "y", "after"))
    base = plan(pg_x=planned(grants={"/g": old}), web_y=planned(), chat_y=planned())
    target = plan(pg_x=planned(grants={"/g": new}), web_z=planned(), chat_y=planned())
    before, after = edges("web_y pg_x", "chat_y pg_x"), edges("web_z pg_x", "chat_y pg_x")
    steps = tiers(base, before, target, after)
    contents = {old: old_bytes, new: new_bytes}
    pg = EntryId("pg:main@x")

    def granted(sent: int) -> list[tuple[str, str, str]]:
        mixture = mix(base, target, steps, sent, contents)
        content = {**contents, **mixture.contents}[mixture.entries[pg].grants["/g"]]
        rows = json.loads(content)["consumers"]
        return sorted((row["instance"], row["machine"], row["login"]) for row in rows)

    assert granted(0) == [("chat", "y", "before"), ("web", "y", "x")]
    assert granted(1) == [("chat", "y", "after"), ("web", "y", "x"), ("web", "z", "x")]
    assert granted(len(steps) - 1) == granted(1)
    assert granted(len(steps)) == [("chat", "y", "after"), ("web", "z", "x")]


def test_grants_that_only_grow_or_only_shrink_make_no_new_file():
    """A file of either plan is kept as it is where it holds all the rows already."""
    one, one_bytes = contributions(consumer("web", "y"))
    two, two_bytes = contributions(consumer("chat", "y"), consumer("web", "y"))
    contents = {one: one_bytes, two: two_bytes}
    few = plan(pg_x=planned(grants={"/g": one}), web_y=planned())
    many = plan(pg_x=planned(grants={"/g": two}), web_y=planned(), chat_y=planned())
    more, less = edges("web_y pg_x", "chat_y pg_x"), edges("web_y pg_x")
    for base, target, steps in (
        (few, many, tiers(few, less, many, more)),
        (many, few, tiers(many, more, few, less)),
    ):
        mixture = mix(base, target, steps, 1, contents)
        assert mixture.entries[EntryId("pg:main@x")].grants == {"/g": two}
        assert mixture.contents == {}


def test_a_mixture_is_grouped_by_machine():
    """Each machine that is asked for has its own entries alone."""
    target = plan(a_x=planned(), b_x=planned(), c_y=planned(), d_z=planned())
    grouped = mix(target, target, (), 0, {}).by_machine([MachineName(each) for each in "xyw"])
    assert {machine: names(entries) for machine, entries in grouped.items()} == {
        "x": ["a_x", "b_x"],
        "y": ["c_y"],
    }


def test_a_gap_that_a_step_named_is_no_edge():
    """While a consumer does without what had to go first, nothing is said to be used by it."""
    base = plan(old_x=planned(listens={"p": 5432}), web_y=planned())
    target = plan(new_x=planned(listens={"p": 5432}), web_y=planned("2"))
    old, new = edges("web_y old_x"), edges("web_y new_x")
    steps = tiers(base, old, target, new)
    users = [[e.provider for e in mix_edges(old, new, steps, sent)] for sent in range(4)]
    assert users == [["old:main@x"], [], [], ["new:main@x"]]
