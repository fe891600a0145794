"""One fleet that several people edit: by its directory, by commands, and from another directory."""

import getpass
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from keyplane.parts import change_messages as changes
from keyplane.parts import control_messages as messages
from keyplane.parts.control_client import ControlClient, RefusedError
from tests.e2e import fleet as fleets
from tests.e2e.fleet import Fleet, Ran

pytestmark = pytest.mark.slow

FLEET = """fleet = "shared"   # of several people

[machines.alpha]
address = "127.77.0.1"
local = true

[machines.beta]
address = "127.77.0.2"
local = true

# what they look at
[instances.page]
module = "page"
settings.main.title = "hello"   # said first
placement.every.main = { machines = ["alpha"] }
"""
PAGE = """module = "page"
version = "1"
[roles.main.settings]
title = { type = "string", default = "untitled" }
size = { type = "integer", default = 1, minimum = 1 }
[roles.main.listens]
web = { protocol = "tcp" }
[roles.main.units.sleeper]
kind = "process"
command = ["sleep", "infinity"]
stopTimeout = "2s"
env = { TITLE = "${settings.title}", SIZE = "${settings.size}" }
"""
SPARE = """module = "spare"
version = "1"
[roles.main.units.sleeper]
kind = "process"
command = ["sleep", "infinity"]
stopTimeout = "2s"
"""
INTERFACES = """[greeting.exports]
word = "string"
"""
GREETER = SPARE.replace("spare", "greeter").replace(
    "[roles.main.units",
    """[roles.main.provides.it]
interface = "greeting"
exports.word = { value = "hello", lifecycle = "static" }
[roles.main.units""",
)
GUEST = (
    SPARE.replace("spare", "guest").replace(
        "[roles.main.units",
        """[roles.main.uses.host]
interface = "greeting"
[roles.main.units""",
    )
    + 'env = { WORD = "${results.host.word}" }\n'
)
TRIES = 5
"""One of two that fail at once may be kept from the processor for longer than a rollout waits for it."""
ME = f"{getpass.getuser()} ({os.getuid()})"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    source = tmp_path_factory.mktemp("source")
    (source / "fleet.toml").write_text(FLEET)
    (source / "interfaces.toml").write_text(INTERFACES)
    modules = {"page": PAGE, "spare": SPARE, "greeter": GREETER, "guest": GUEST}
    for name, text in modules.items():
        folder = source / "modules" / name
        folder.mkdir(parents=True)
        (folder / "module.toml").write_text(text)
    with fleets.running(source, tmp_path_factory.mktemp("run") / "fleet") as fleet:
        yield fleet


@pytest.fixture
def fleet(running: Fleet) -> Fleet:
    """Its directory holds the newest revision, whatever was done before."""
    running.run("export", "--force")
    return running


def control(fleet: Fleet) -> ControlClient:
    return ControlClient(fleet.directory / ".keyplane" / "run" / "control.sock")


def history(fleet: Fleet) -> list[dict]:
    return fleet.run("history", "--json").json


def newest(fleet: Fleet) -> dict:
    return history(fleet)[0]


def title(fleet: Fleet) -> str:
    """As the process has it."""
    (pid, _) = fleet.start_ids()["page:main@alpha/sleeper"]
    environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next(each[6:].decode() for each in environment if each.startswith(b"TITLE="))


def ends(ran: Ran) -> dict:
    return json.loads(ran.out.splitlines()[-1])


def test_an_edit_is_a_revision_with_its_author_and_leaves_all_else_as_it_was(fleet: Fleet) -> None:
    """It is rolled out as an apply is; history and audit log name the account that asked."""
    before = newest(fleet)
    text = fleet.run("show", str(before["revision"]), "fleet.toml").out
    ran = fleet.run("set", "page.title", "two words", "--yes")
    lines = ran.out.splitlines()
    assert lines[0] == 'page.main.title will be "two words" (is "hello")'
    # The second sentence comes once it is so, and before what comes of it.
    done = lines.index('page.main.title = "two words" (was "hello")')
    assert lines[done - 1].endswith(" untouched")
    assert lines[done + 1].startswith("  step 1 of ")
    assert "~ page:main@alpha  restart sleeper  (env.sleeper.TITLE)" in ran.out
    assert "1 restarted" in ran.out
    assert title(fleet) == "two words"
    after = newest(fleet)
    assert after["revision"] == before["revision"] + 1
    assert (after["verb"], after["who"], after["moved"]) == ("set", ME, 1)
    assert after["parent"] == before["revision"]
    assert after["generation"] == fleet.status()["generation"]
    made = fleet.run("show", str(after["revision"]), "fleet.toml").out
    assert made == text.replace('"hello"   # said first', '"two words"   # said first')
    number = str(after["revision"])
    diff = fleet.run("show", number, "--diff").out
    assert '+settings.main.title = "two words"   # said first' in diff
    assert fleet.run("show", number, "fleet.toml", "--diff").out == diff
    assert len(fleet.run("show", number, "interfaces.toml", "--diff").out.splitlines()) == 1
    assert fleet.run("show", number, "fleet.toml", "--json").json["files"] == {"fleet.toml": made}
    assert "did you mean fleet.toml?" in fleet.run("show", number, "flet.toml", exit_status=2).err
    row = fleet.run("audit", "--json", "--tail", "1").json[0]
    assert (row["who"], row["what"]) == (ME, "set")
    assert row["detail"]["revision"] == after["revision"]
    assert row["detail"]["generation"] == after["generation"]
    assert f"rollout {row['detail']['rollout']}" in fleet.run("audit").out


def test_a_fleet_gets_another_name(fleet: Fleet) -> None:
    """It is shown, asked, done and told, although no entry is another by it."""
    name = fleet.status()["fleet"]
    fleet.edit("fleet.toml", f'fleet = "{name}"', 'fleet = "another"')
    ran = fleet.run("apply", exit_status=2)
    assert f"> fleet {name}  changes its name to another\n" in ran.out
    assert "no difference" not in ran.out
    assert "nobody is there to be asked" in ran.err
    assert fleet.status()["fleet"] == name
    ran = fleet.run("apply", "--yes")
    assert "the fleet is now called another\n" in ran.out
    assert "0 restarted, 0 reloaded" in ran.out
    assert fleet.status()["fleet"] == "another"
    assert "fleet another, generation " in fleet.run("status").out
    fleet.edit("fleet.toml", 'fleet = "another"', f'fleet = "{name}"')
    assert json.loads(fleet.run("apply", "--yes", "--json").out.splitlines()[0])["former"] == (
        "another"
    )
    assert fleet.status()["fleet"] == name


def test_a_directory_that_lacks_others_edits_is_not_applied(fleet: Fleet) -> None:
    """They are shown, by whom and what; exported first they are kept beside one's own."""
    base = newest(fleet)["revision"]
    ran = fleet.run("set", "page.size", "7", "--yes", "--why", "they asked")
    assert f"revision {base + 1} is not in this directory: `keyplane export` brings it" in ran.out
    fleet.edit("fleet.toml", "# what they look at", "# what all look at")
    ran = fleet.run("apply", "--yes", exit_status=1)
    assert (
        f"since revision {base}, which this directory descends from: with `set` by {ME}" in ran.err
    )
    assert f"revision {base + 1}" in ran.err
    assert ME in ran.err
    assert "set: they asked (page.main.size = 7)" in ran.err
    assert "+settings.main.size = 7" in ran.err
    assert "nothing was applied" in ran.err
    assert f"--over {base + 1}" in ran.err
    refused = fleet.run("apply", "--yes", "--json", exit_status=1).json
    assert refused["code"] == "edited-since"
    assert [way.split("`")[1] for way in refused["ways"]] == [
        "keyplane export",
        f"keyplane apply --over {base + 1}",
    ]
    assert [each["revision"]["revision"] for each in refused["edits"]] == [base + 1]
    assert newest(fleet)["revision"] == base + 1
    ran = fleet.run("export")
    assert "fleet.toml: merged with what was edited here" in ran.out
    text = (fleet.directory / "fleet.toml").read_text()
    assert "# what all look at" in text
    assert "settings.main.size = 7" in text
    assert ends(fleet.run("apply", "--yes", "--json"))["outcome"] == "done"
    assert newest(fleet)["revision"] == base + 2


def test_somebody_may_go_over_the_edits_that_he_looked_at(fleet: Fleet) -> None:
    """Those, and no later ones."""
    base = newest(fleet)["revision"]
    fleet.run("set", "page.title", "theirs", "--yes")
    fleet.edit("fleet.toml", "settings.main.title = ", "settings.main.title = 'mine' # ")
    ran = fleet.run("apply", "--yes", "--over", str(base), exit_status=1)
    assert f"since revision {base}, which `--over` names: with `set` by {ME}" in ran.err
    assert title(fleet) == "theirs"
    fleet.run("apply", "--yes", "--over", str(base + 1))
    assert title(fleet) == "mine"
    assert newest(fleet)["parent"] == base + 1


def test_a_text_that_is_the_newest_already_is_no_reason_to_refuse(fleet: Fleet) -> None:
    """However it came to be so."""
    path = fleet.directory / "fleet.toml"
    fleet.run("set", "page.title", "same", "--yes")
    path.write_text(fleet.run("show", str(newest(fleet)["revision"]), "fleet.toml").out)
    (fleet.directory / ".keyplane" / "base.json").unlink()
    for _ in range(2):
        assert ends(fleet.run("apply", "--yes", "--json"))["outcome"] == "done"
        assert fleet.run("audit", "--json", "--tail", "1").json[0]["detail"]["changed"] is False
    fleet.edit("fleet.toml", "same", "other")
    fleet.run("apply", "--yes")
    assert title(fleet) == "other"


def test_a_directory_of_which_nobody_knows_what_it_descends_from_is_refused(fleet: Fleet) -> None:
    (fleet.directory / ".keyplane" / "base.json").write_text("{")
    fleet.edit("fleet.toml", "# of several people", "# of somebody")
    ran = fleet.run("apply", "--yes", exit_status=1)
    assert "does not say which revision it descends from" in ran.err
    assert '+fleet = "shared"   # of somebody' in ran.err
    fleet.run("apply", "--yes", "--over", str(newest(fleet)["revision"]))


def test_who_was_cut_off_knows_his_own_revision_again(fleet: Fleet) -> None:
    """Though nobody told him that it was made."""
    base = fleet.directory / ".keyplane" / "base.json"
    before = json.loads(base.read_text())
    fleet.edit("fleet.toml", "shared", "shared")
    fleet.edit("fleet.toml", "\n# what", "\n# sent. What")
    fleet.run("apply", "--yes")
    sent = json.loads(base.read_text())["digest"]
    base.write_text(json.dumps(before | {"sent": sent}))
    fleet.edit("fleet.toml", "# sent. What", "# sent, and edited again. What")
    fleet.run("apply", "--yes")


def test_an_edit_that_cannot_be_changes_nothing(fleet: Fleet) -> None:
    """Rows of the planner, and what no text can say."""
    before = newest(fleet)
    ran = fleet.run("set", "page.size", "-1", "--yes", exit_status=3)
    assert "it must be at least 1" in ran.out
    ran = fleet.run("set", "page.size", "many", "--yes", exit_status=1)
    assert '"many" is no integer' in ran.err
    ran = fleet.run("assign", "page", "gama", "--yes", exit_status=1)
    assert "no machine `gama`" in ran.err
    ran = fleet.run("pin", "alpha", "nothing", "beta", "--yes", exit_status=3)
    assert "no interface" in ran.out
    ran = fleet.run("rollback", "0000", "--yes", exit_status=1)
    assert "no generation that is kept begins with `0000`" in ran.err
    assert newest(fleet) == before


def test_an_edit_that_changes_nothing_says_so(fleet: Fleet) -> None:
    fleet.run("set", "page.size", "3", "--yes")
    before = newest(fleet)
    assert "page.main.size = 3 already\nnothing changes" in fleet.run("set", "page.size", "3").out
    assert fleet.run("unpin", "alpha", "store", "--json").json["nothing"]
    assert newest(fleet) == before


def test_an_assignment_tells_what_it_changed_on_its_machine(fleet: Fleet) -> None:
    """A module without an instance gets one; a dry run records nothing."""
    before = newest(fleet)
    ran = fleet.run("assign", "spare", "beta", "--dry-run")
    assert "on beta:\n  + spare:main@beta  start" in ran.out
    assert newest(fleet) == before
    fleet.run("assign", "spare", "beta", "--yes")
    assert "spare:main@beta" in {each["entry"] for each in fleet.status()["entries"]}
    ran = fleet.run("unassign", "spare", "beta", "--yes")
    assert "on beta:\n  - spare:main@beta  stop" in ran.out
    assert "1 stopped" in ran.out
    assert "spare:main@beta" not in {each["entry"] for each in fleet.status()["entries"]}


def test_what_was_there_only_for_an_instance_goes_with_it(fleet: Fleet) -> None:
    """A provider that nobody assigned, and that nobody else uses."""
    ran = fleet.run("assign", "guest", "beta", "--yes")
    assert "+ greeter:main@beta  start" in ran.out
    assert "2 started" in ran.out
    ran = fleet.run("unassign", "guest", "beta", "--yes")
    assert "- greeter:main@beta  stop" in ran.out
    assert "- guest:main@beta  stop" in ran.out
    assert "2 stopped" in ran.out


def test_a_pin_is_put_and_taken_back(fleet: Fleet) -> None:
    """It stands with its machine's own lines."""
    fleet.run("pin", "alpha", "greeting", "alpha", "--yes")
    text = fleet.run("show", str(newest(fleet)["revision"]), "fleet.toml").out
    assert 'pins.greeting = "alpha"' in text
    fleet.run("unpin", "alpha", "greeting", "--yes")
    assert "pins" not in fleet.run("show", str(newest(fleet)["revision"]), "fleet.toml").out


def test_a_rollback_is_a_revision_that_names_where_it_went(fleet: Fleet) -> None:
    """To the generation before, and from there back again; or to any that is named."""
    fleet.run("set", "page.title", "first", "--yes")
    first = newest(fleet)
    fleet.run("set", "page.title", "second", "--yes")
    second = newest(fleet)
    ran = fleet.run("rollback", "--yes")
    lines = ran.out.splitlines()
    will, name = lines[0].removesuffix(" again").split(" will be that of ")
    assert will == "the text"
    assert lines.index(f"back to {name}") > 1
    assert "~ page:main@alpha  restart sleeper" in ran.out
    assert title(fleet) == "first"
    made = newest(fleet)
    assert made["revision"] == second["revision"] + 1
    assert f"revision {first['revision']}" in made["why"]
    assert made["generation"] == first["generation"]
    fleet.run("rollback", "--yes")
    assert title(fleet) == "second"
    fleet.run("rollback", first["generation"][7:15], "--yes")
    assert title(fleet) == "first"
    detail = fleet.run("audit", "--json", "--tail", "1").json[0]["detail"]
    assert detail["to"]["generation"] == first["generation"]
    ran = fleet.run("rollback", first["generation"], "--yes")
    assert "nothing changes" in ran.out


def order(asked: changes.Asked, proposal: messages.Proposal) -> messages.Apply:
    return messages.Apply(
        asked=asked,
        parent=proposal.parent,
        revision=proposal.revision,
        generation=proposal.generation,
    )


def test_of_two_at_once_the_other_is_told_who_was_quicker(fleet: Fleet) -> None:
    """Nothing of his is done; said again it is done on top."""
    client = control(fleet)
    one = changes.SetValue(place="page.title", value="quick")
    other = changes.SetValue(place="page.size", value="9")
    looked = client.propose(other)
    list(client.apply(order(one, client.propose(one))))
    with pytest.raises(RefusedError) as refused:
        list(client.apply(order(other, looked)))
    assert refused.value.problem.code == "target-moved"
    said = refused.value.problem.message
    assert re.match(re.escape(f"{ME} was quicker: `set` (page.main.title = "), said), said
    assert "nothing of yours was applied" in said
    list(client.apply(order(other, client.propose(other))))
    same = client.revision(None).files
    again = changes.Directory(files=same | {"notes": b"x"}, over=newest(fleet)["revision"])
    looked = client.propose(again)
    list(client.apply(order(again, looked)))
    with pytest.raises(RefusedError, match="of the same text: what you asked for is being done"):
        list(client.apply(order(again, looked)))
    text = fleet.run("show", str(newest(fleet)["revision"]), "fleet.toml").out
    assert '"quick"' in text
    assert "size = 9" in text


def test_several_commands_at_once_all_end_in_words(fleet: Fleet) -> None:
    """Whoever loses is refused or overtaken, with an exit status; what won is whole."""
    before = newest(fleet)["revision"]
    children = [fleet.start("set", "page.title", f"of {n}", "--yes") for n in range(3)]
    ended = [(*child.communicate(timeout=300), child.returncode) for child in children]
    assert any(status == 0 for _, _, status in ended), ended
    for out, err, status in ended:
        assert "Traceback" not in out + err
        if status != 0:
            assert status == 1
            assert "was quicker" in err or "took this one over" in err, (out, err)
    made = [each for each in history(fleet) if each["revision"] > before]
    assert {each["verb"] for each in made} == {"set"}
    fleets.wait_for(lambda: fleet.run("status", exit_status=None).exit == 0, "all is well")
    last = re.search(r'"(of \d)"', made[0]["why"])
    assert last is not None
    assert title(fleet) == last[1]


def test_a_second_directory_is_applied_to_the_same_control_plane(
    fleet: Fleet, tmp_path: Path
) -> None:
    """It was exported, and knows from where."""
    other = tmp_path / "other"
    made = fleet.run("export", str(other), "--json").json
    assert made["revision"] == newest(fleet)["revision"]
    assert "fleet.toml" in made["written"]
    text = (other / "fleet.toml").read_text()
    assert text == fleet.run("show", str(newest(fleet)["revision"]), "fleet.toml").out
    (other / "fleet.toml").write_text(re.sub('title = "[^"]*"', 'title = "from there"', text))
    fleet.run("apply", str(other), "--yes")
    assert title(fleet) == "from there"
    ran = fleet.run("apply", "--yes", exit_status=1)
    assert '+settings.main.title = "from there"' in ran.err
    ran = fleet.run("up", str(other), exit_status=2)
    assert "was exported from the control plane of" in ran.err


def test_a_plan_keeps_what_the_target_has_and_says_so(fleet: Fleet) -> None:
    """As an apply would: a new instance does not take a port that is another's."""
    path = fleet.directory / "fleet.toml"
    new = (
        '\n[instances.a-first]\nmodule = "page"\nplacement.every.main = { machines = ["alpha"] }\n'
    )
    path.write_text(path.read_text() + new)
    ran = fleet.run("plan", ".", "--json")
    generation = fleet.status()["generation"][7:19]
    assert f"planned from the target that stands, generation {generation}" in ran.err
    ports = ran.json["allocations"]["ports"]["alpha"]
    assert ports["page:main/web"] < ports["a-first:main/web"]
    ran = fleet.run("plan", ".", "--json", "--alone")
    assert ran.err == ""
    ports = ran.json["allocations"]["ports"]["alpha"]
    assert ports["a-first:main/web"] < ports["page:main/web"]


def test_up_goes_by_the_same_rule(fleet: Fleet) -> None:
    """The control plane runs, and what was applied last goes on."""
    fleet.run("set", "page.title", "kept", "--yes")
    path = fleet.directory / "fleet.toml"
    path.write_text(path.read_text() + "# edited here\n")
    fleet.run("down")
    ran = fleet.run("up", ".", "--yes", exit_status=1)
    assert '+settings.main.title = "kept"' in ran.err
    assert title(fleet) == "kept"
    fleet.run("export")
    fleet.run("up", ".", "--yes")
    assert newest(fleet)["verb"] == "up"
    assert title(fleet) == "kept"


DOOR = """module = "door"
version = "1"
[roles.main.settings]
key = { type = "string" }
[roles.main.units.lock]
kind = "process"
command = ["sh", "-c", "test -e $KEY && exec sleep infinity; exit 3"]
stopTimeout = "2s"
env = { KEY = "${settings.key}" }
"""


def test_what_failed_is_applied_again_as_it_is_once_its_cause_is_mended(
    fleet: Fleet, tmp_path: Path
) -> None:
    """All that failed is named; what was told of it before does not end the second apply."""
    key = tmp_path / "key"
    folder = fleet.directory / "modules" / "door"
    folder.mkdir()
    (folder / "module.toml").write_text(DOOR)
    path = fleet.directory / "fleet.toml"
    for name in ("left", "right"):
        path.write_text(
            f'{path.read_text()}\n[instances.{name}]\nmodule = "door"\n'
            f'settings.main.key = "{key}"\nplacement.every.main = {{ machines = ["beta"] }}\n'
        )
    both = ["left:main@beta", "right:main@beta"]
    for _ in range(TRIES):
        end = fleet.apply(exit_status=1)
        assert end["outcome"] == "failed"
        named = [each["entry"] for each in end["failures"]]
        assert named
        assert set(named) <= set(both)
        if named == both:
            break
    else:
        pytest.fail(f"{TRIES} tries, and never did both fail within the time that is waited for it")
    key.touch()
    assert fleet.apply()["outcome"] == "done"
    for name in ("left", "right"):
        fleet.run("unassign", name, "beta", "--yes")


def test_a_controller_that_is_stopped_amid_a_rollout_leaves_no_trace_of_a_fault(
    fleet: Fleet, tmp_path: Path
) -> None:
    """Whoever watched is told; the next life goes on with it."""
    folder = fleet.directory / "modules" / "door"
    folder.mkdir(exist_ok=True)
    (folder / "module.toml").write_text(DOOR.replace("exit 3", "exec sleep infinity"))
    text = (folder / "module.toml").read_text()
    (folder / "module.toml").write_text(
        text.replace("stopTimeout", 'health = { tcp = "127.0.0.1:9" }\nstopTimeout')
    )
    path = fleet.directory / "fleet.toml"
    path.write_text(
        f'{path.read_text()}\n[instances.shut]\nmodule = "door"\nsettings.main.key = "/"\n'
        'placement.every.main = { machines = ["beta"] }\n'
    )
    watching = fleet.start("apply", "--yes")
    fleets.wait_for(
        lambda: (fleet.status()["rollout"] or {}).get("state") == "waiting", "it waits for health"
    )
    fleet.run("down")
    out, err = watching.communicate(timeout=300)
    assert watching.returncode == 1
    assert "the control plane was stopped before the rollout came to its end" in err, (out, err)
    log = (fleet.directory / ".keyplane" / "log" / "controller.log").read_text()
    assert "Traceback" not in log
    assert "CancelledError" not in log
    fleet.run("up", ".", "--no-apply")
    fleet.run("rollback", "--yes")
