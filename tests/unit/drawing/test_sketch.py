"""What a picture shows of a plan."""

from keyplane.drawing import Value
from keyplane.drawing.sketch import Link, Strand, natural, sketch
from keyplane.model.diagnostic import Diagnostic, Severity
from tests.unit.drawing import fleets

DB = fleets.entry("pg:main@alpha", "postgres", listens={"sql": 20000}, units=["server"])
GAME = fleets.entry("game:main@beta", "game", listens={}, units=["server", "migrate"])
BOTH = {"pg:main@alpha": DB, "game:main@beta": GAME}
READS_DB = fleets.edge("game:main@beta", "db", "pg:main@alpha", "database")


def value(name: str, plane: str, *sources: str) -> Value:
    return Value(name=name, plane=plane, sources=sources)


def links(*values: Value) -> dict[Strand, Link]:
    found = sketch(fleets.plan(BOTH, [READS_DB]), {"game:main@beta": values}).links
    assert {(one.consumer, one.slot, one.provider, one.provide) for one in found} == {
        ("game:main@beta", "db", "pg:main@alpha", "database")
    }
    return {one.strand: one for one in found}


def test_an_edge_is_drawn_once_for_each_plane_that_its_values_travel_on() -> None:
    dsn = "pg:main@alpha/provides/database/dsn"
    found = links(
        value("server.DB_DSN", "env", dsn),
        value("server.DB_URL", "env", "settings.prefix", dsn),
        value("server./etc/game", "config", "pg:main@alpha/provides/database/port"),
    )
    assert {strand: one.reads for strand, one in found.items()} == {
        Strand.ENV: ("dsn as server.DB_DSN", "dsn as server.DB_URL"),
        Strand.CONFIG: ("port as server./etc/game",),
    }


def test_a_slot_of_which_no_value_is_read_is_drawn_as_presence() -> None:
    other = value("server.X", "env", "pg:main@alpha/provides/other/dsn", "settings.a/b")
    assert [one.reads for one in links(other).values()] == [()]
    assert list(links(other)) == [Strand.PRESENCE]


def test_what_is_read_of_a_slot_itself_travels_on_its_edge() -> None:
    found = links(
        value("server.DB_HOST", "env", "bound.db.address"),
        value("command[2]", "closure", "credentials.db"),
        value("server.OTHER", "dynamic", "bound.mesh.address"),
    )
    assert list(found) == [Strand.CLOSURE, Strand.ENV]


def test_externals_stand_outside_all_machines() -> None:
    edge = fleets.edge("game:main@beta", "files", "external:s3")
    found = sketch(fleets.plan(BOTH, [edge]), {})
    assert [node.id for node in found.nodes if node.machine is None] == ["external:s3"]
    assert [name for name, _ in found.machines] == ["alpha", "beta"]


def test_an_edge_to_what_the_plan_does_not_list_is_not_drawn() -> None:
    edges = [
        fleets.edge("game:main@beta", "db", "gone:main@alpha"),
        fleets.edge("gone:main@alpha", "db", "pg:main@alpha"),
    ]
    assert sketch(fleets.plan(BOTH, edges), {}).links == ()


def test_error_rows_stand_at_their_entries_and_others_below() -> None:
    def row(subject: str, severity: Severity = Severity.ERROR) -> Diagnostic:
        return Diagnostic(code="slot-unbound", severity=severity, subject=subject, message="no")

    rows = [row("game:main"), row("pg:main@alpha"), row("fleet.toml"), row("gone:main")]
    found = sketch(fleets.plan(BOTH, [], (), [*rows, row("pg:main", Severity.WARNING)]), {})
    assert {node.id: node.errors for node in found.nodes} == {
        "game:main@beta": ("slot-unbound: no",),
        "pg:main@alpha": ("slot-unbound: no",),
    }
    assert found.elsewhere == ("fleet.toml: no", "gone:main: no")
    assert found.errors == 4


def test_numbers_in_names_count_as_numbers() -> None:
    names = ["web-10", "web-2", "web", "web-02", "10", "web-2b"]
    assert sorted(names, key=natural) == ["10", "web", "web-02", "web-2", "web-2b", "web-10"]
