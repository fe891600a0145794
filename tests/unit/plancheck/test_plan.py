"""Every way in which a plan can be wrong is caught, and a sound one is let be."""

import hashlib

import msgspec
import pytest

from keyplane.model.diagnostic import Diagnostic, Severity
from keyplane.model.documents import Documents
from keyplane.model.module import Listen, Module, Role
from keyplane.plancheck.plan import check
from tests.unit.plancheck.values import (
    WEB,
    Tree,
    arena,
    broken,
    edge,
    entry,
    export,
    hashed,
    read,
    sealed,
    sound,
    tampered,
    unit,
)


def found(rows: list[Diagnostic]) -> set[tuple[str, str, str]]:
    return {(row.code, row.subject, row.path) for row in rows}


def web(tree: Tree) -> Tree:
    return tree["entries"][WEB]


def set_at(tree: Tree, path: str, value: object) -> None:
    """`entries/web:main@alpha` is spelled WEB; the rest are keys, parted by bars."""
    *way, last = path.replace("WEB", WEB).split("|")
    for step in way:
        tree = tree[step]
    tree[last] = value


def test_a_sound_plan_has_no_rows():
    """Holes, templates, a circle, a machine-local value, an external: nothing is wrong."""
    assert check(sound()) == []


def test_hashes_word_for_word():
    """The canonical texts behind one entry, written out in full."""
    vpn = sound().entries["vpn:node@alpha"]
    closure = sha(
        '{"artifacts":{},"listens":{"wg":51820},"module":"m","resources":{},"secrets":[],'
        '"units":{"main":{"command":["serve"],"kind":"process"}},"volumes":{}}'
    )
    part = sha('{"artifacts":{},"fields":{"command":["serve"],"kind":"process"}}')
    machine = sha('{"name":"alpha","platform":"linux/amd64"}')
    assert vpn.closure == closure
    assert vpn.units["main"].digest == sha(f'{{"closure":"{part}","dependencies":{{}},"env":{{}}}}')
    assert vpn.key == sha(
        f'{{"closure":"{closure}","dependencies":{{}},"env":{{"main":{{}}}},"machine":"{machine}"}}'
    )


def sha(text: str) -> str:
    return "sha256-" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("path", "value", "row"),
    [
        ("format", "keyplane.plan/0", ("plan-form", "plan", "format")),
        ("fleet", None, ("plan-form", "plan", "fleet")),
        ("entries|WEB|dependencies", ["vpn:node@alpha", "pg:main@alpha"], ("plan-form", WEB, "dependencies")),
        ("entries|WEB|secrets", ["b", "a"], ("plan-form", WEB, "secrets")),
        ("entries|WEB|reads", ["b", "a"], ("plan-form", WEB, "reads")),
        ("entries|WEB|holes", [], ("plan-form", WEB, "holes")),
        ("entries|WEB|holes", ["web.CPU", "web.X"], ("plan-form", WEB, "holes")),
        ("entries|WEB|requirements", [{"b": 1}, {"a": 1}], ("plan-form", WEB, "requirements")),
        (
            "exports|vpn:node/provides/peer/address|readers",
            [WEB, WEB],
            ("plan-form", "vpn:node/provides/peer/address", "readers"),
        ),
        ("machines|beta", None, None),
    ],
)  # fmt: skip
def test_form(path: str, value: object, row: tuple[str, str, str] | None):
    """Versions, order, doubles, and holes that are listed as the units have them."""
    if row is None:
        plan = broken(lambda tree: tree["machines"].pop("beta"))
        assert ("plan-form", "pong:main@beta", "") in found(check(plan))
        return
    assert found(check(broken(lambda tree: set_at(tree, path, value)))) == {row}


def test_ids_and_the_order_of_edges_and_rows():
    """An id that is none, edges out of order or twice, and rows out of order."""
    named = broken(lambda tree: tree["entries"].update({"Web:main@alpha": entry()}))
    assert found(check(named)) == {("plan-form", "Web:main@alpha", "")}
    turned = broken(lambda tree: tree["edges"].reverse(), order=False)
    assert found(check(turned)) == {("plan-form", "plan", "edges")}
    doubled = broken(lambda tree: tree["edges"].append(dict(tree["edges"][0])))
    assert found(check(doubled)) == {("plan-form", "plan", "edges")}
    rows = [
        {"code": "b", "subject": "z", "message": ""},
        {"code": "a", "subject": "a", "message": ""},
    ]
    told = broken(lambda tree: tree.update(diagnostics=rows))
    assert found(check(told)) == {("plan-form", "plan", "diagnostics")}


def test_an_entry_that_depends_on_itself():
    """No entry is its own provider."""
    plan = broken(lambda tree: web(tree)["dependencies"].append(WEB))
    assert ("plan-form", WEB, "dependencies") in found(check(plan))


@pytest.mark.parametrize(
    ("consumer", "provider", "row"),
    [
        (WEB, "gone:main@alpha", ("plan-edge", WEB, "uses.x")),
        ("gone:main@alpha", "pg:main@alpha", ("plan-edge", "gone:main@alpha", "uses.x")),
    ],
)
def test_an_edge_with_a_loose_end(consumer: str, provider: str, row: tuple[str, str, str]):
    """Both ends of an edge are entries, or its provider is an external."""
    plan = broken(lambda tree: tree["edges"].append(edge(consumer, "x", provider, "p")))
    assert found(check(plan)) == {row}


def test_a_dependency_without_an_edge():
    """What an entry's key hangs on, it uses."""
    plan = broken(lambda tree: web(tree)["dependencies"].append("vpn:node@alpha"))
    assert check(plan) == []
    plan = broken(
        lambda tree: tree["entries"]["vpn:node@alpha"].update(dependencies=["pg:main@alpha"])
    )
    assert found(check(plan)) == {("plan-edge", "vpn:node@alpha", "dependencies")}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"lifecycle": "eternal"}, "lifecycle"),
        ({"access": "secret"}, "access"),
        ({"readers": ["gone:main@alpha"]}, "readers"),
        ({"readers": ["vpn:node@alpha"]}, "readers"),
    ],
)
def test_an_export_that_cannot_be(change: Tree, path: str):
    """Words that mean nothing, readers that are not there or that no edge leads from."""
    name = "pg:main/provides/database/dsn"
    plan = broken(lambda tree: tree["exports"][name].update(change))
    assert found(check(plan)) == {("plan-export", name, path)}
    plan = broken(lambda tree: tree["exports"].update(nowhere=export("static", "routable")))
    assert found(check(plan)) == {("plan-export", "nowhere", "")}


def test_a_machine_local_value_is_read_on_its_own_machine():
    """From another machine it is refused, save of a provider in which nothing runs."""
    name = "ping:main/provides/p/x"

    def local(tree: Tree) -> None:
        tree["exports"][name]["access"] = "machine-local"

    assert found(check(broken(local))) == {("plan-export", name, "access")}

    def unitless(tree: Tree) -> None:
        local(tree)
        tree["entries"]["ping:main@alpha"]["units"] = {}

    assert check(broken(unitless)) == []


def test_of_two_slots_that_lead_to_one_provide_one_reads_what_is_machine_local():
    """The other may lead to another machine, for what is routable; both may not."""
    name = "vpn:node/provides/peer/address"

    def beside(tree: Tree) -> None:
        tree["entries"]["vpn:node@beta"] = entry()
        tree["edges"].append(edge(WEB, "backup", "vpn:node@beta", "peer"))

    assert check(broken(beside)) == []

    def apart(tree: Tree) -> None:
        beside(tree)
        tree["edges"].remove(edge(WEB, "mesh", "vpn:node@alpha", "peer"))
        tree["edges"].append(edge(WEB, "mesh", "vpn:node@beta", "peer"))

    assert ("plan-export", name, "access") in found(check(broken(apart)))


@pytest.mark.parametrize(
    ("path", "value", "row"),
    [
        ("units|web|env|PEER", "x", ("plan-cell", "units.web.dynamic.PEER")),
        (
            "resources",
            {"r": {"type": "file", "path": "/r", "mode": {"hole": {"fact": "f"}}}},
            ("plan-cell", "resources"),
        ),
        ("units|web|limits", {"m": {"hole": {"fact": "f"}}}, ("plan-cell", "units.web.limits")),
        ("units|web|health", {"tcp": {"hole": {"fact": "f"}}}, ("plan-cell", "units.web.health")),
        ("requirements", [{"value": {"hole": {"fact": "f"}}}], ("plan-cell", "requirements")),
    ],
)  # fmt: skip
def test_a_refused_cell(path: str, value: object, row: tuple[str, str]):
    """A value that waits for a fact is no part of what is made; none is dynamic and settled."""
    plan = broken(lambda tree: set_at(tree, f"entries|WEB|{path}", value))
    assert found(check(plan)) == {(row[0], WEB, row[1])}


@pytest.mark.parametrize(
    "change",
    [
        {"from": "vpn:node@alpha/provides/peer/other"},
        {"from": "pg:main@alpha/provides/database/dsn"},
        {"from": "vpn:node@beta/provides/peer/address"},
        {"from": []},
        {"reaction": "panic"},
        {"reaction": None},
        {"onMissing": "ask"},
        {"maxStaleness": "soon"},
    ],
)
def test_a_contract_that_cannot_be_kept(change: Tree):
    """Its source is a dynamic export that an edge leads to; its words are those of the contract."""

    def changed(tree: Tree) -> None:
        contract = web(tree)["units"]["web"]["dynamic"]["PEER"]
        contract.update(change)
        for name in [name for name, value in contract.items() if value is None]:
            del contract[name]

    assert found(check(broken(changed))) == {("plan-contract", WEB, "units.web.dynamic.PEER")}


def test_a_reader_of_a_dynamic_value_is_among_its_readers():
    """Who has a contract is told of by the export."""
    name = "vpn:node/provides/peer/address"
    plan = broken(lambda tree: tree["exports"][name].update(readers=[]))
    assert found(check(plan)) == {("plan-contract", WEB, "units.web.dynamic.PEER")}


def with_listen(number: int, holder: str = WEB) -> Tree:
    tree = arena()
    tree["entries"][holder]["listens"]["x"] = number
    label = f"{holder.rpartition('@')[0]}/x"
    tree["allocations"]["ports"]["alpha"][label] = number
    return tree


def test_ports_are_of_one_listen_and_in_range():
    """One assigned number has one listen; a fixed one may stand for tcp and for udp."""
    assert found(check(read(sealed(with_listen(20000))))) == {("plan-port", WEB, "listens.x")}
    assert found(check(read(sealed(with_listen(70000))))) == {("plan-port", WEB, "listens.x")}
    assert check(read(sealed(with_listen(51820)))) == []
    thrice = with_listen(51820)
    thrice["entries"]["pg:main@alpha"]["listens"]["y"] = 51820
    thrice["allocations"]["ports"]["alpha"]["pg:main/y"] = 51820
    assert {row.code for row in check(read(sealed(thrice)))} == {"plan-port"}
    both = with_listen(20000, "pg:main@alpha")
    assert check(read(sealed(both))) == []


@pytest.mark.parametrize(
    ("listen", "sound"),
    [
        (Listen(protocol="udp", port=20000), True),
        (Listen(protocol="tcp", port=20000), False),
        (Listen(protocol="udp"), False),
    ],
)
def test_with_the_documents_protocols_decide(listen: Listen, *, sound: bool):
    """Two fixed numbers of different protocols go together, and no others."""
    roles = {"main": Role(listens={"sql": Listen(protocol="tcp", port=20000), "x": listen})}
    module = Module(name="m", version="1", file="m", roles=roles)
    rows = check(read(sealed(with_listen(20000))), Documents(modules={"m": module}))
    assert (rows == []) is sound


@pytest.mark.parametrize(
    "ports",
    [
        {"alpha": {"pg:main/sql": 20001, "vpn:node/wg": 51820}},
        {"alpha": {"vpn:node/wg": 51820}},
        {"alpha": {"pg:main/sql": 20000, "vpn:node/wg": 51820, "gone:main/x": 20005}},
        {"alpha": {"pg:main/sql": 20000, "vpn:node/wg": 51820}, "gamma": {}},
    ],
)
def test_allocations_are_the_listens(ports: Tree):
    """Each listen has its number there, no other has one, on machines of the plan alone."""
    rows = check(broken(lambda tree: tree["allocations"].update(ports=ports)))
    assert {row.code for row in rows} == {"plan-port"}


@pytest.mark.parametrize(
    "given",
    [
        {"resources": {"r": {"type": "directory", "path": "/etc//pg"}}},
        {"resources": {"r": {"type": "file", "path": "/etc/grants.json"}}},
        {"volumes": {"v": {"path": "/var/lib/pg"}}},
        {"units": {"main": unit(configData={"/etc/pg": "d"})}},
        {"units": {"main": unit(configData={"/c": "d"}), "n": unit(configData={"/c": "e"})}},
    ],
)
def test_a_path_has_one_owner(given: Tree):
    """Resources, volumes, grants and configuration files of one machine part its paths."""
    plan = broken(lambda tree: tree["entries"]["vpn:node@alpha"].update(given))
    assert {row.code for row in check(plan)} == {"plan-path"}


def test_packages_accounts_and_services_have_one_owner():
    """So have the other things that a machine has once; on another machine there is another."""
    for kind in ("package", "account"):
        held = {"r": {"type": kind, "name": "x"}}

        def both(tree: Tree, held: Tree = held) -> None:
            tree["entries"]["vpn:node@alpha"]["resources"] = held
            tree["entries"]["ping:main@alpha"]["resources"] = held

        assert {row.path for row in check(broken(both))} == {f"{kind} x"}

        def apart(tree: Tree, held: Tree = held) -> None:
            tree["entries"]["vpn:node@alpha"]["resources"] = held
            tree["entries"]["pong:main@beta"]["resources"] = held

        assert check(broken(apart)) == []

    def service(tree: Tree) -> None:
        for name in ("vpn:node@alpha", "ping:main@alpha"):
            tree["entries"][name]["units"] = {"main": unit(kind="service", unit="x.service")}

    assert {row.path for row in check(broken(service))} == {"service x.service"}


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("closure", {(WEB, "closure"), (WEB, "key")}),
        ("key", {(WEB, "key")}),
        ("module", {(WEB, "closure")}),
        ("units|web|command", {(WEB, "closure"), (WEB, "units.web.digest")}),
        ("units|web|archive", {(WEB, "closure"), (WEB, "units.web.digest")}),
        ("units|web|env|DSN", {(WEB, "units.web.digest"), (WEB, "key")}),
        ("units|web|dynamic|PEER|template", {(WEB, "units.web.digest"), (WEB, "key")}),
        ("units|web|digest", {(WEB, "units.web.digest")}),
        ("artifacts|code", {(WEB, "closure"), (WEB, "units.web.digest")}),
        ("volumes|v", {(WEB, "closure")}),
        ("version", set()),
        ("units|web|stopTimeout", set()),
        ("units|web|configData|/etc/web.json", set()),
    ],
)
def test_a_hash_that_is_not_of_what_the_plan_says(path: str, rows: set[tuple[str, str]]):
    """Each thing that counts moves its hashes, and what is out of the key moves none."""
    value = ["x"] if path.endswith("command") else "x"
    plan = tampered(lambda tree: set_at(tree, f"entries|WEB|{path}", value))
    keyed = [row for row in check(plan) if row.code == "plan-key"]
    assert {(row.subject, row.path) for row in keyed} == rows | {("plan", "generation")}


def test_a_key_moves_with_the_keys_of_its_providers():
    """A provider's key stands in its consumers' keys; for a circle, one hash of it all."""
    plan = tampered(lambda tree: set_at(tree, "entries|pg:main@alpha|key", hashed("x")))
    keyed = {(row.subject, row.path) for row in check(plan) if row.path == "key"}
    assert keyed == {
        (name, "key") for name in ("pg:main@alpha", WEB, "ping:main@alpha", "pong:main@beta")
    }
    plan = tampered(lambda tree: set_at(tree, "entries|pong:main@beta|units|main|env", {"X": "1"}))
    keyed = {(row.subject, row.path) for row in check(plan) if row.path == "key"}
    assert keyed == {("ping:main@alpha", "key"), ("pong:main@beta", "key")}
    plan = tampered(lambda tree: set_at(tree, "machines|beta|key", hashed("x")))
    keyed = {(row.subject, row.path) for row in check(plan) if row.path == "key"}
    assert keyed == {("ping:main@alpha", "key"), ("pong:main@beta", "key")}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("generation", "x"),
        ("machines|beta|address", "10.9.9.9"),
        ("machines|beta|rates", {}),
    ],
)
def test_the_generation_is_of_all_that_machines_are(path: str, value: object):
    """What a machine is told of is in the hash of the whole."""
    plan = tampered(lambda tree: set_at(tree, path, value))
    assert found(check(plan)) == {("plan-key", "plan", "generation")}


def test_what_the_plan_itself_calls_wrong_needs_no_second_row():
    """An entry with an error row of its own, or of its role, is listed as far as it goes."""
    conflict = {"resources": {"r": {"type": "file", "path": "/etc/pg"}}}
    plan = broken(lambda tree: tree["entries"]["vpn:node@alpha"].update(conflict))
    assert {row.code for row in check(plan)} == {"plan-path"}
    for subject in ("vpn:node", "vpn:node@alpha"):
        row = Diagnostic(code="resource-conflict", subject=subject, message="both")
        told = msgspec.structs.replace(plan, diagnostics=[row])
        assert check(told) == []
        mild = msgspec.structs.replace(row, severity=Severity.WARNING)
        assert check(msgspec.structs.replace(plan, diagnostics=[mild])) != []
