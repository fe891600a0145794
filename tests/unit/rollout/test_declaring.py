"""What a machine is told, and what it is not told because it could not do it."""

from dataclasses import replace
from typing import Any

import pytest

from keyplane.model.declaration import (
    ConfigFile,
    DeclaredDirectory,
    DeclaredFile,
    DeclaredUnit,
    Health,
    OfferNumber,
    Reload,
    Restart,
)
from keyplane.model.diagnostic import Severity
from keyplane.model.interface import ValueType
from keyplane.model.module import OnMissing, ReactionKind
from keyplane.model.names import Digest, EntryId, MachineName, UnitName
from keyplane.model.plan import Dynamic, Hole, HoleValue
from keyplane.model.reaction import Contract, DeclaredRates, Publication
from keyplane.rollout import declaring_values
from keyplane.rollout.declaring import Made, Refused, check, declare, declare_entry
from keyplane.rollout.planned import MixedEntry, same_declared
from tests.unit.rollout.values import digest, plan, planned, unit

ME = EntryId("web:main@alpha")
MAIN = UnitName("main")
X = {"path": "/etc/x", "type": "file", "text": "hello"}


def made(entry: MixedEntry) -> Made:
    found = declare_entry(ME, entry)
    assert isinstance(found, Made)
    return found


def test_a_unit_is_resolved_to_the_last_number():
    """Durations become milliseconds, the archive's name its digest; what is unsaid is default."""
    stated = unit(
        "main",
        env={"B": "2", "A": "1"},
        config_data={"/etc/web.json": digest("config")},
        archive="code",
        user="web",
        working_directory="/srv",
        limits={"memory": "256M"},
        health={"http": "http://h/", "interval": "500ms", "retries": 5, "startPeriod": "1m"},
        reload={"signal": "SIGHUP"},
        restart="on-failure",
        stop_timeout="3s",
    )
    entry = planned("1", units={"main": stated}, artifacts={"code": digest("code")})
    assert made(entry).entry.units[MAIN] == DeclaredUnit(
        digest=digest("main"),
        kind="process",
        command=("serve",),
        env={"A": "1", "B": "2"},
        config={"/etc/web.json": ConfigFile(digest=digest("config"))},
        archive=digest("code"),
        user="web",
        working_directory="/srv",
        limits={"memory": "256M"},
        health=Health(http="http://h/", interval_ms=500, retries=5, start_period_ms=60_000),
        reload=Reload(signal="HUP"),
        restart=Restart.ON_FAILURE,
        stop_timeout_ms=3_000,
    )
    plain = made(planned("1")).entry.units[MAIN]
    assert plain == DeclaredUnit(digest=digest("1"), kind="process", command=("serve",))


def test_listens_of_udp_are_told_as_that_and_send_a_machine_something_new():
    """A plan shows their numbers alone."""
    entry = planned("1", listens={"game": 7, "api": 8})
    assert made(entry).entry.udp == ()
    known = replace(entry, udp=("game",))
    assert made(known).entry.udp == ("game",)
    assert not same_declared(entry, known)


def test_files_directories_archives_and_volumes():
    """Each resource is at its path; a volume is kept, and its units' account has it alone."""
    entry = planned(
        units={"main": unit("main", user="web")},
        resources={
            "a": X | {"mode": "0600", "owner": "root", "adopt": True},
            "b": {"type": "file", "path": "/etc/y", "file": "y.conf", "digest": digest("y")},
            "c": {"type": "directory", "path": "/srv/d", "group": "staff"},
            "d": {"type": "archive", "path": "/srv/site", "archive": "site"},
        },
        volumes={"data": {"path": "/var/lib/web"}},
        artifacts={"site": digest("site")},
    )
    found = made(entry)
    assert found.entry.files == {
        "/etc/x": DeclaredFile(digest=digest("hello"), mode="0600", owner="root", adopt=True),
        "/etc/y": DeclaredFile(digest=digest("y")),
    }
    assert found.entry.directories == {
        "/srv/d": DeclaredDirectory(group="staff"),
        "/var/lib/web": DeclaredDirectory(mode="0700", owner="web", keep=True),
    }
    assert {path: a.digest for path, a in found.entry.archives.items()} == {
        "/srv/site": digest("site")
    }
    assert found.contents == {digest("hello"): b"hello"}


@pytest.mark.parametrize(
    ("users", "mode", "owner"),
    [(["pg"], "0400", "pg"), (["pg", "pg"], "0400", "pg"), (["pg", "x"], "0444", None)],
)
def test_grants_belong_to_the_account_that_reads_them(
    users: list[str], mode: str, owner: str | None
):
    """Mode 0400 where the units are of one account; readable by all where they are not."""
    units = {f"u{number}": unit(user=user) for number, user in enumerate(users)}
    found = made(planned(units=units, grants={"/etc/grants.json": digest("g")}))
    assert found.entry.files == {
        "/etc/grants.json": DeclaredFile(digest=digest("g"), mode=mode, owner=owner)
    }


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"units": {"u": unit(kind="container", image="i")}}, "units.u.kind"),
        ({"units": {"u": unit(kind="service", unit="x.service")}}, "units.u.kind"),
        ({"units": {"u": unit(kind="job", schedule="*-*-* 03:00:00")}}, "units.u.schedule"),
        ({"units": {"u": unit(kind="job", image="i", run_once=True)}}, "units.u.image"),
        ({"units": {"u": unit(kind="job")}}, "units.u.runOnce"),
        ({"units": {"u": unit(bundle="b")}}, "units.u.bundle"),
        ({"units": {"u": unit(nix="n")}}, "units.u.nix"),
        ({"units": {"u": unit(archive="never-built")}}, "units.u.archive"),
        ({"units": {"u": unit(stop_timeout="soon")}}, "units.u.stopTimeout"),
        ({"units": {"u": unit(health={"tcp": "h:1", "timeout": "1"})}}, "units.u.health.timeout"),
        ({"resources": {"r": {"type": "file", "path": "/f", "file": "gone"}}}, "resources.r"),
        ({"resources": {"r": {"type": "package", "name": "vim"}}}, "resources.r"),
        ({"resources": {"r": {"type": "account", "name": "web"}}}, "resources.r"),
        ({"resources": {"r": {"type": "hosts", "entries": {}}}}, "resources.r"),
        ({"resources": {"r": {"type": "archive", "path": "/a", "archive": "b"}}}, "resources.r"),
        ({"secrets": ["admin"]}, "secrets.admin"),
        ({"credentials": {"db": "/run/c"}}, "uses.db"),
        ({"state": {"scores": {}}}, "state.scores"),
        ({"reads": ["a:main/scores"]}, "reads"),
    ],
)
def test_what_an_agent_cannot_run_is_refused_by_name(given: dict[str, Any], path: str):
    """The row names entry and place, and says what to do; the entry is not sent in part."""
    found = declare_entry(ME, planned(**given))
    assert isinstance(found, Refused)
    (row,) = found.rows
    assert (row.subject, row.path, row.severity) == (ME, path, Severity.ERROR)
    assert row.resolution


def test_a_dynamic_value_travels_as_its_contract():
    """Durations become milliseconds, a template its parts, what is unsaid is default."""
    peer = "vpn:node@alpha/provides/peer/address"
    plain = Dynamic(from_=peer, transport="bus", reaction="restart")
    full = Dynamic(
        from_=[peer, "x"],
        reaction="live",
        on_missing={"default": 7},
        max_staleness="5m",
        template="a ${results.m.address} b ${results.n.x} ${results.m.address}",
    )
    entry = planned(units={"u": unit(dynamic={"PEER": plain, "/etc/peers": full})})
    assert made(entry).entry.units[UnitName("u")].dynamic == {
        "PEER": Contract(sources=(peer,), reaction=ReactionKind.RESTART),
        "/etc/peers": Contract(
            sources=(peer, "x"),
            parts=("a ", 0, " b ", 1, " ", 0),
            reaction=ReactionKind.LIVE,
            on_missing=OnMissing.DEFAULT,
            default="7",
            max_staleness_ms=300_000,
        ),
    }


@pytest.mark.parametrize(("name", "place"), [("V", "env.V"), ("/v", "configData./v")])
def test_a_contract_that_nobody_could_keep_is_refused(name: str, place: str):
    """With no reaction stated: a plan made by hand, as the planner's has a row of its own."""
    found = declare_entry(ME, planned(units={"u": unit(dynamic={name: Dynamic(from_="x")})}))
    assert isinstance(found, Refused)
    assert [row.path for row in found.rows] == [f"units.u.{place}"]


def test_a_dynamic_export_travels_with_its_source_and_type():
    """The agent of the provider publishes by it."""
    said = {
        "peer/address": {"type": "string", "file": "/run/address"},
        "peer/size": {"type": "integer", "command": ["wc", "x"], "every": "10s"},
        "peer/role": {"type": "string", "published": True},
    }
    assert made(planned(publishes=said)).entry.publishes == {
        "peer/address": Publication(file="/run/address"),
        "peer/size": Publication(type=ValueType.INTEGER, command=("wc", "x"), every_ms=10_000),
        "peer/role": Publication(published=True),
    }


def test_rates_are_the_machines_or_the_defaults():
    said = {
        "debounce": {"window": "2s", "burst": 9},
        "restartBudget": {"perUnit": 1, "window": "1m"},
    }
    assert declaring_values.rates(said) == DeclaredRates(
        window_ms=2_000, burst=9, restarts_per_unit=1, budget_ms=60_000
    )
    assert declaring_values.rates(None) == DeclaredRates(
        window_ms=30_000, burst=3, restarts_per_unit=5, budget_ms=3_600_000
    )


def test_a_hole_names_the_fact_that_it_waits_for():
    """A value that was never probed cannot be declared, in env or configData."""
    hole = HoleValue(hole=Hole(fact="cpu.model", machine="alpha", type="string"))
    entry = planned(units={"u": unit(env={"CPU": hole}, config_data={"/c": hole})})
    found = declare_entry(ME, entry)
    assert isinstance(found, Refused)
    assert [(row.code, row.path) for row in found.rows] == [
        ("hole", "units.u.configData./c"),
        ("hole", "units.u.env.CPU"),
    ]
    assert "cpu.model of alpha" in found.rows[0].message


def test_who_is_started_first_is_declared_unless_the_plan_says_otherwise():
    """The agent chooses nothing: what both cannot have was found out by the planner."""
    asks = {"handover": "start-first", "replaces": "old"}
    units = {
        "free": unit(**asks),
        "bound": unit(**asks, stop_first="volume data"),
        "plain": unit(handover="stop-first"),
    }
    found = made(planned(units=units))
    assert {name: (u.start_first, u.replaces) for name, u in found.entry.units.items()} == {
        "free": (True, "old"),
        "bound": (False, None),
        "plain": (False, None),
    }
    assert found.rows == ()


def test_the_archives_of_units_and_resources_are_named_with_an_entry_that_wants_each():
    code = {"code": digest("code")}
    runs = planned(units={"main": unit("main", archive="code")}, artifacts=code)
    site = {"d": {"type": "archive", "path": "/srv/site", "archive": "site"}}
    holds = planned(resources=site, artifacts={"site": digest("site")})
    refused = planned(secrets=["s"], units={"u": unit(archive="other")}, artifacts={"other": "x"})
    other, last = EntryId("web:main@beta"), EntryId("web:main@gamma")
    found = check({last: refused, other: runs, ME: runs, EntryId("a:b@c"): holds})
    assert found.archives == {digest("code"): ME, digest("site"): "a:b@c"}


def declared(contents: dict[Digest, bytes]) -> Any:
    entries = plan(
        web_alpha=planned(
            units={"u": unit(config_data={"/c": digest("c")})},
            resources={"x": X},
            grants={"/g": digest("g")},
        ),
        web_beta=planned(units={"u": unit(config_data={"/c": digest("other")})}),
    )
    number = OfferNumber(1, 7)
    return declare(MachineName("alpha"), number, digest("generation"), entries, contents)


def test_a_declaration_has_the_entries_of_its_machine_and_just_their_contents():
    """Nothing of other machines travels, and no bytes that nothing here names."""
    every = {digest(text): text.encode() for text in ("c", "g", "other")}
    found = declared(every)
    assert (found.machine, found.offer, found.generation) == (
        "alpha",
        OfferNumber(1, 7),
        digest("generation"),
    )
    assert list(found.entries) == ["web:main@alpha"]
    assert found.contents == {digest(text): text.encode() for text in ("c", "g", "hello")}


def test_contents_that_are_missing_refuse_the_whole_declaration():
    """A machine is never told of a file that it then could not have."""
    found = declared({digest("c"): b"c"})
    assert isinstance(found, Refused)
    assert [(row.code, row.path) for row in found.rows] == [("content-missing", "/g")]
