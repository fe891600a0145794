"""The numbers of listens."""

import msgspec

from tests.unit.planner import fleets as f

HERE = f.machines("alpha", "beta")


def listening(*listens: str) -> str:
    return f.UNIT + "".join(f"[roles.main.listens.{one}\n" for one in listens)


WEB = listening('http]\nprotocol = "tcp"')
MAIL = listening('smtp]\nprotocol = "tcp"\nport = 25')


def ports(made: f.Plan, machine: str = "alpha") -> dict[str, int]:
    return made.allocations.ports[machine]


def test_a_kept_number_stays_and_a_freed_one_rests_for_a_plan() -> None:
    fleet = HERE + f.instance("a", "web", "alpha") + f.instance("b", "web", "alpha")
    first = f.plan_of(fleet, {"web": WEB})
    assert ports(first) == {"a:main/http": 20000, "b:main/http": 20001}
    second = f.plan_of(
        HERE + f.instance("b", "web", "alpha") + f.instance("c", "web", "alpha"),
        {"web": WEB},
        previous=first,
    )
    assert ports(second) == {"b:main/http": 20001, "c:main/http": 20002}
    third = f.plan_of(
        HERE + "".join(f.instance(name, "web", "alpha") for name in "bcd"),
        {"web": WEB},
        previous=second,
    )
    assert ports(third) == {"b:main/http": 20001, "c:main/http": 20002, "d:main/http": 20000}


def test_a_number_is_kept_for_the_machine_it_was_given_on() -> None:
    first = f.plan_of(HERE + f.instance("a", "web", "alpha") + f.instance("b", "web"), {"web": WEB})
    moved = f.plan_of(
        HERE + f.instance("a", "web", "beta") + f.instance("b", "web"), {"web": WEB}, previous=first
    )
    assert ports(moved) == {"b:main/http": 20001}
    assert ports(moved, "beta") == {"a:main/http": 20001, "b:main/http": 20000}


def test_a_fixed_port_wins_over_a_kept_number() -> None:
    first = f.plan_of(HERE + f.instance("a", "web", "alpha"), {"web": WEB})
    fixed = listening('http]\nprotocol = "tcp"\nport = 20000')
    fleet = HERE + f.instance("a", "web", "alpha") + f.instance("z", "fixed", "alpha")
    made = f.plan_of(fleet, {"web": WEB, "fixed": fixed}, previous=first)
    assert ports(made) == {"a:main/http": 20001, "z:main/http": 20000}
    assert f.rows(made) == []


def test_a_claim_is_of_protocol_and_number() -> None:
    udp = MAIL.replace('"tcp"', '"udp"')
    fleet = HERE + f.instance("a", "mail", "alpha") + f.instance("b", "udp", "alpha")
    assert f.rows(f.plan_of(fleet, {"mail": MAIL, "udp": udp})) == []
    fleet += f.instance("c", "mail", "alpha")
    row = f.row(f.plan_of(fleet, {"mail": MAIL, "udp": udp}), "port-claimed")
    assert row.subject == "c:main@alpha"
    assert "a:main/smtp" in row.message
    assert "c:main/smtp" in row.message


def test_assigned_numbers_are_unique_whatever_the_protocol() -> None:
    both = listening('a]\nprotocol = "tcp"', 'b]\nprotocol = "udp"')
    made = f.plan_of(HERE + f.instance("x", "both", "alpha"), {"both": both})
    assert ports(made) == {"x:main/a": 20000, "x:main/b": 20001}


def test_a_full_range_is_short() -> None:
    many = "".join(
        f'[roles.main.listens.p{number}]\nprotocol = "tcp"\n' for number in range(10_001)
    )
    made = f.plan_of(HERE + f.instance("x", "many", "alpha"), {"many": f.UNIT + many})
    row = f.row(made, "placement-short")
    assert row.subject == "x:main@alpha"
    assert len(ports(made)) == 10_000
    assert made.entries["x:main@alpha"].listens.keys() == {
        name.partition("/")[2] for name in ports(made)
    }


def test_a_container_publishes_the_number_and_a_long_form_is_left() -> None:
    pod = """
[roles.main.listens]
web = { protocol = "tcp" }
dns = { protocol = "udp" }
[roles.main.units.main]
kind = "container"
image = "base"
publish = { web = 80, dns = 53, long = "8080:80" }
[build.upstream.base]
image = "registry.example.net/base:1"
"""
    made = f.plan_of(HERE + f.instance("x", "pod", "alpha"), {"pod": pod})
    assert f.said(made, "x:main@alpha")["publish"] == {
        "dns": "20000:53/udp", "long": "8080:80", "web": "20001:80",
    }  # fmt: skip
    assert f.rows(made) == []


def test_a_list_of_long_forms_is_left_and_its_plan_can_be_read_again() -> None:
    pod = """
[roles.main.units.main]
kind = "container"
image = "base"
publish = ["8081:81", "8080:80"]
[build.upstream.base]
image = "registry.example.net/base:1"
"""
    made = f.plan_of(HERE + f.instance("x", "pod", "alpha"), {"pod": pod})
    assert f.said(made, "x:main@alpha")["publish"] == ["8080:80", "8081:81"]
    assert msgspec.json.decode(msgspec.json.encode(made), type=f.Plan) == made
