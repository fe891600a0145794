"""A planner that stays: what a change of a value reaches, and what it leaves as it was."""

from collections.abc import Mapping

import msgspec

from keyplane.adapters import directory
from keyplane.model.plan import Plan
from keyplane.planner import PlanRequest, PlanResult, allocate, changes, plan
from keyplane.planner.changes import Change, ExportValue, FactValue, NewDocuments, SettingValue
from keyplane.planner.warm import Planner
from tests.unit.planner import fleets as f

HERE = f.machines("alpha", "beta")
SETTING = '[roles.main.settings]\nx = { type = "string", default = "one" }\n'
APP = f'{f.UNIT}env = {{ X = "${{settings.x}}", HERE = "${{machine.name}}" }}\n{SETTING}'
TWO_APPS = HERE + f.instance("app-a", "app") + f.instance("app-b", "app")


class Followed:
    """A planner beside the documents, each of its plans compared with one made as a whole."""

    def __init__(
        self,
        fleet: str,
        modules: Mapping[str, str],
        interfaces: str = "",
        *,
        files: Mapping[str, str] | None = None,
        previous: Plan | None = None,
    ) -> None:
        text = {"fleet.toml": f'fleet = "arena"\n{fleet}', "interfaces.toml": interfaces}
        for name, said in modules.items():
            text[f"modules/{name}/module.toml"] = f'module = "{name}"\nversion = "1"\n{said}'
        text |= files or {}
        reading = directory.documents_of(
            {path: content.encode() for path, content in text.items()}, f.no_starlark
        )
        self.documents = reading.documents
        self._evaluate = reading.evaluate
        self.planner = Planner(
            PlanRequest(documents=reading.documents, evaluate=reading.evaluate, previous=previous)
        )

    def update(self, change: Change) -> PlanResult:
        before = self.planner.result
        self.documents, _ = changes.applied(self.documents, change)
        found = self.planner.update(change)
        wanted = plan(
            PlanRequest(documents=self.documents, evaluate=self._evaluate, previous=before.plan)
        )
        assert msgspec.json.encode(found.plan) == msgspec.json.encode(wanted.plan)
        assert (found.contents, found.grants) == (wanted.contents, wanted.grants)
        assert (found.machines, found.digests) == (wanted.machines, wanted.digests)
        return found


def setting(instance: str, value: object) -> SettingValue:
    return SettingValue(instance=instance, role="main", setting="x", value=value)


def moved(before: PlanResult, after: PlanResult) -> set[str]:
    """The entries that are other things than before."""
    entries = after.plan.entries
    return {name for name, entry in before.plan.entries.items() if entries[name] is not entry}


def test_a_setting_makes_only_the_entries_of_its_instance_again() -> None:
    followed = Followed(TWO_APPS, {"app": APP})
    before = followed.planner.result
    after = followed.update(setting("app-a", "two"))
    assert moved(before, after) == {"app-a:main@alpha", "app-a:main@beta"}
    assert after.plan.edges is before.plan.edges
    assert f.env(before.plan, "app-a:main@alpha")["X"] == "one"
    assert f.env(after.plan, "app-a:main@alpha")["X"] == "two"


def test_a_setting_that_nothing_reads_changes_nothing() -> None:
    followed = Followed(TWO_APPS, {"app": f"{f.UNIT}{SETTING}"})
    before = followed.planner.result
    assert followed.update(setting("app-a", "two")).plan is before.plan


def test_what_is_not_there_is_not_changed() -> None:
    followed = Followed(TWO_APPS, {"app": APP})
    before = followed.planner.result
    assert followed.update(setting("nobody", "two")) is before
    assert followed.update(FactValue(machine="nowhere", fact="f", value=1)) is before


def test_rows_of_a_setting_come_and_go() -> None:
    followed = Followed(TWO_APPS, {"app": APP})
    before = followed.planner.result
    wrong = followed.update(setting("app-a", 7))
    assert ("setting-invalid", "app-a:main") in f.rows(wrong.plan)
    assert followed.update(setting("app-a", "one")).plan.diagnostics == []
    assert moved(before, wrong) == {"app-a:main@alpha", "app-a:main@beta"}


def test_an_export_reaches_its_readers_through_exports_of_exports() -> None:
    middle = """
[roles.main.uses.store]
interface = "store"
[roles.main.provides.far]
interface = "far"
scope = "mesh"
exports.url = { value = "via ${results.store.url}", lifecycle = "static" }
"""
    reader = f.READER.replace('"store"', '"far"')
    fleet = (
        HERE
        + f.instance("near", "near", "alpha")
        + f.instance("middle", "middle", "alpha")
        + f.instance("reader", "reader", "beta")
        + f.instance("other", "app", "beta")
    )
    far = '[far.exports]\nurl = "string"\n'
    modules = {"near": f.PROVIDER, "middle": middle, "reader": reader, "app": APP}
    followed = Followed(fleet, modules, f.STORE + far)
    before = followed.planner.result
    assert f.env(before.plan, "reader:main@beta")["URL"] == "via http://10.0.0.1/"
    after = followed.update(
        ExportValue(module="near", role="main", provide="store", export="url", value="moved")
    )
    assert f.env(after.plan, "reader:main@beta")["URL"] == "via moved"
    assert "other:main@beta" not in moved(before, after)


def test_a_setting_that_a_role_asks_with_stands_in_the_export_that_its_reader_reads() -> None:
    store = '[store.request]\nname = "string"\n[store.exports]\nurl = "string"\n'
    far = '[far.exports]\nurl = "string"\n'
    provider = f.PROVIDER.replace("${machine.address}", "${consumer.request.name}")
    middle = f"""{SETTING}
[roles.main.uses.store]
interface = "store"
request = {{ name = "${{settings.x}}" }}
[roles.main.provides.far]
interface = "far"
scope = "mesh"
exports.url = {{ value = "${{results.store.url}}", lifecycle = "static" }}
"""
    reader = f.READER.replace('"store"', '"far"')
    fleet = (
        HERE
        + f.instance("near", "near", "alpha")
        + f.instance("middle", "middle", "alpha")
        + f.instance("reader", "reader", "beta")
    )
    modules = {"near": provider, "middle": middle, "reader": reader}
    followed = Followed(fleet, modules, store + far)
    after = followed.update(setting("middle", "two"))
    assert f.env(after.plan, "reader:main@beta")["URL"] == "http://two/"


def test_a_fact_fills_a_hole_and_leaves_one_on_its_machine_only() -> None:
    followed = Followed(TWO_APPS, {"app": f'{f.UNIT}env = {{ F = "${{machine.facts.f}}" }}\n'})
    before = followed.planner.result
    assert len(before.plan.diagnostics) == 4
    filled = followed.update(FactValue(machine="alpha", fact="f", value="here"))
    assert f.env(filled.plan, "app-a:main@alpha")["F"] == "here"
    assert moved(before, filled) == {"app-a:main@alpha", "app-b:main@alpha"}
    other = followed.update(FactValue(machine="alpha", fact="f", value="there"))
    assert moved(filled, other) == {"app-a:main@alpha", "app-b:main@alpha"}
    again = followed.update(FactValue(machine="alpha", fact="f", value=None))
    assert again.plan == before.plan


def test_a_fact_that_is_another_machines_export_reaches_its_readers() -> None:
    provider = f.UNIT + (
        '[roles.main.provides.store]\ninterface = "store"\nscope = "mesh"\n'
        'exports.url = { fact = "f", lifecycle = "probed" }\n'
    )
    fleet = HERE + f.instance("near", "near", "alpha") + f.instance("reader", "reader", "beta")
    followed = Followed(fleet, {"near": provider, "reader": f.READER}, f.STORE)
    for value in ("x", "y", 4, True, None, "x"):
        after = followed.update(FactValue(machine="alpha", fact="f", value=value))
        shown = f.env(after.plan, "reader:main@beta").get("URL")
        assert (shown == value) == isinstance(value, str)


def test_a_fact_that_places_is_followed_by_planning_as_a_whole() -> None:
    app = f'{f.UNIT}[[roles.main.requirements]]\nsubject = "f"\npredicate = "exists"\n'
    fleet = f'{HERE}[instances.app]\nmodule = "app"\nplacement.count.main = {{ count = 1 }}\n'
    followed = Followed(fleet, {"app": app}, files=f.facts("beta", f="x"))
    assert list(followed.planner.result.plan.entries) == ["app:main@beta"]
    followed.update(FactValue(machine="alpha", fact="f", value="x"))
    after = followed.update(FactValue(machine="beta", fact="f", value=None))
    assert list(after.plan.entries) == ["app:main@alpha"]


def test_documents_that_differ_in_a_number_only_by_its_type_differ() -> None:
    """Python holds `1` and `true` to be equal."""
    number = SETTING.replace('"string", default = "one"', '"number", default = 3')
    app = f'{f.UNIT}env = {{ X = "${{settings.x}}", F = "${{machine.facts.f}}" }}\n{number}'
    followed = Followed(
        TWO_APPS, {"app": app}, files={**f.facts("alpha", f=1), **f.facts("beta", f=1)}
    )
    for value in (True, 1, 1.5):
        whole, _ = changes.applied(
            followed.documents, FactValue(machine="alpha", fact="f", value=value)
        )
        after = followed.update(NewDocuments(documents=whole))
        assert f.env(after.plan, "app-a:main@alpha")["F"] == msgspec.json.encode(value).decode()


def test_a_setting_that_could_not_be_read_is_another_document_than_one_that_is_gone() -> None:
    """What names it was told nothing as long as it was there."""
    broken = APP.replace('"string", default = "one"', '"text"')
    followed = Followed(TWO_APPS, {"app": broken})
    assert {code for code, _ in f.rows(followed.planner.result.plan)} == {"wrong-type"}
    gone = Followed(TWO_APPS, {"app": APP.removesuffix(SETTING)})
    after = followed.update(NewDocuments(documents=gone.documents))
    assert {code for code, _ in f.rows(after.plan)} == {"unknown-reference"}


def test_two_files_at_one_path_are_a_conflict_as_long_as_settings_say_so() -> None:
    resource = (
        '[roles.main.resources.notes]\ntype = "file"\npath = "/etc/${settings.x}"\n'
        'text = "on ${machine.name}"\n'
    )
    followed = Followed(TWO_APPS, {"app": f"{f.UNIT}{SETTING}{resource}"})
    assert {code for code, _ in f.rows(followed.planner.result.plan)} == {"resource-conflict"}
    assert f.rows(followed.update(setting("app-b", "two")).plan) == []
    assert len(f.rows(followed.update(setting("app-a", "two")).plan)) == 2


def test_a_port_that_rested_for_one_plan_is_given_by_the_next() -> None:
    """What is short of a port is planned as a whole, whatever changed."""
    count = allocate.LAST - allocate.FIRST + 1
    fleet = f.machines("alpha") + f.instance("app", "app")

    def app(*names: str) -> dict[str, str]:
        listens = "".join(f'[roles.main.listens.{name}]\nprotocol = "tcp"\n' for name in names)
        return {"app": f"{APP}{listens}"}

    names = [f"p{number:05}" for number in range(count)]
    before = f.plan_of(fleet, app(*names[1:], "older"))
    followed = Followed(fleet, app(*names), previous=before)
    assert f.rows(followed.planner.result.plan) == [("placement-short", "app:main@alpha")]
    assert f.rows(followed.update(setting("app", "two")).plan) == []


def test_an_implied_entry_is_no_place_of_a_count() -> None:
    """Planned again, warm or cold, the role stays where it was placed."""
    box = f"""{f.UNIT}
[roles.main.provides.store]
interface = "store"
scope = "machine"
exports.url = {{ value = "here", lifecycle = "static" }}
"""
    modules = {"box": box, "reader": f.READER, "app": APP}
    rest = f.instance("reader", "reader", "alpha") + f.instance("app", "app")
    there = HERE + '[instances.box]\nmodule = "box"\nplacement.count.main = { count = 1 }\n'
    beta = there.replace("count = 1", 'count = 1, machines = ["beta"]')
    before = f.plan_of(beta + f.instance("app", "app"), modules, f.STORE)
    followed = Followed(there + rest, modules, f.STORE, previous=before)
    assert {"box:main@alpha", "box:main@beta"} <= followed.planner.result.plan.entries.keys()
    after = followed.update(setting("app", "two"))
    assert {"box:main@alpha", "box:main@beta"} <= after.plan.entries.keys()
    again = f.plan_of(there + rest, modules, f.STORE, previous=followed.planner.result.plan)
    assert again.entries.keys() == after.plan.entries.keys()
