"""Facts of which there are thousands are said as one list, and read one by one."""

from keyplane.model.facts import Facts, digest, said_in

SAID = Facts({"os.id": "debian", "kernel.modules": ["nf_tables", "wireguard"], "commands": ["["]})


def test_a_member_of_a_list_is_a_fact_of_its_own() -> None:
    """True where it stands there, false where it was looked for in vain."""
    assert SAID.get("kernel.module.wireguard") is True
    assert SAID.get("kernel.module.nf-tables") is True
    assert SAID.get("kernel.module.zfs") is False
    assert SAID.get("command.[") is True
    assert SAID.get("command.nf-tables") is False


def test_nothing_is_known_of_a_list_that_was_not_said() -> None:
    """Nor of what merely begins alike."""
    said = Facts({"os.id": "debian"})
    assert said.get("kernel.module.wireguard") is None
    assert SAID.get("kernel.module.") is None
    assert SAID.get("kernel.modulewireguard") is None
    assert dict(SAID)["os.id"] == "debian"
    assert len(SAID) == 3


def test_a_member_that_was_said_itself_is_as_it_was_said() -> None:
    """As in a file that a person wrote beside what the agent found."""
    both = Facts({**SAID, "kernel.module.zfs": True})
    assert both["kernel.module.zfs"] is True


def test_each_fact_is_said_in_one() -> None:
    assert said_in("kernel.module.wireguard") == "kernel.modules"
    assert said_in("command.git") == "commands"
    assert said_in("os.id") == "os.id"


def test_the_digest_is_of_names_and_values() -> None:
    """In whatever order they came; `1` is not `true`."""
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert len({digest(each) for each in ({"a": 1}, {"a": True}, {"a": "1"}, {"b": 1}, {})}) == 5
