"""What each field of a document is for, in one line, for editors; and its default where it has one.

By what the table is called in messages, then by field. A test holds this against the tables.
"""

from collections.abc import Mapping
from typing import Final

from keyplane.model.module import Json

DESCRIPTION: Final = "For people; it means nothing to the plan."
"""Of `description`, which may stand on any named table."""

_PATH_IN_MODULE = "a path below the module's directory"

FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "a fleet": {
        "fleet": "The name of the fleet.",
        "machines": "The machines, by name.",
        "instances": "What runs, by name: each is one use of a module.",
        "externals": "Providers outside the fleet, by name.",
    },
    "a machine": {
        "address": "How other machines reach it.",
        "tags": "For selections; `key=value` for `spread`.",
        "reactions": "How fast it reacts to values that change while services run.",
        "pins": "By interface: the machine from which this one is answered.",
        "platform": "What it runs on, such as linux/arm64.",
        "local": "Whether its agent runs beside the controller.",
        "exec": "Whether commands may be run on it from outside.",
    },
    "a machine's reactions": {
        "debounce": "How changes are gathered, and how many in a row are followed.",
        "restartBudget": "How many restarts for changed values a unit may have.",
    },
    "a debounce": {
        "window": "How long changes are gathered before they are acted on.",
        "burst": "In how many windows in a row a unit may be acted on.",
    },
    "a restart budget": {
        "perUnit": "Restarts of one unit within the window.",
        "window": "How far back restarts count.",
    },
    "an instance": {
        "module": "The module that it is an instance of.",
        "settings": "By role, then by setting.",
        "placement": "On which machines each role stands.",
        "bind": "By role, then by slot: INSTANCE, INSTANCE:ROLE or external:NAME.",
        "floor": "By role: at least so many members stay up.",
        "onFact": "What a plan made by changed facts may stop or move without a person.",
        "policy": "How its changes roll out, in place of the module's policy.",
    },
    "a placement": {
        "every": "By role: each of the machines that fits.",
        "count": "By role: so many of the machines that fit, kept where they were.",
    },
    "a selection": {
        "machines": "These machines.",
        "tags": "The machines that have all of these tags.",
    },
    "a selection with a count": {
        "count": "How many machines.",
        "machines": "Of these machines.",
        "tags": "Of the machines that have all of these tags.",
        "spread": "The key of a tag over whose values the members are spread.",
    },
    "an external": {
        "interface": "The interface that it provides.",
        "exports": "What its consumers are given, by export.",
    },
    "a policy": {
        "upgrade": "One machine first (so unless said), all together, or recorded for a person.",
        "maxUnavailable": "How many machines of one wave.",
        "settle": "How long an entry has to be well before the next step.",
        "deadline": "How long nothing new may be heard of what was sent before it has failed.",
        "onFailure": "What a failed step does to the rest.",
    },
    "an interface": {
        "request": "What a consumer asks of the provider, by field: its type.",
        "exports": "What a consumer is given, by export: its type.",
    },
    "a module": {
        "module": "The module's name, which is its directory's.",
        "version": "The version; it is shown, and moves no key.",
        "roles": "The roles that it has, by name.",
        "policy": "How changes of it roll out.",
        "build": "What is built from this directory.",
    },
    "a role": {
        "settings": "What the fleet may set, by name.",
        "uses": "The slots: what it needs of others, by name.",
        "provides": "What it gives to others, by name.",
        "reactions": "By SLOT.EXPORT in one dotted key: what a change of a dynamic value does.",
        "listens": "The ports that it listens on, by name.",
        "requires": "Interfaces that have to be there, of which no value is read.",
        "claims": "Names of what is singular on a machine.",
        "capabilities": "What the machine has to be capable of.",
        "resources": "Files, packages, accounts and so on that it owns on its machine, by name.",
        "volumes": "Directories that must not be lost, by name.",
        "secrets": "Its own secrets, by name: made once for each machine, and kept.",
        "state": "The buckets that it writes, by name.",
        "reads": "The buckets that it reads, as INSTANCE:ROLE/BUCKET.",
        "zone": "The DNS zone that it answers.",
        "seats": "What is singular in the machine or the fleet and serves verbs, by name.",
        "units": "What runs, by name.",
        "requirements": "What the facts of its machine have to be.",
    },
    "a setting": {
        "type": "The type of its value.",
        "default": "Its value where the fleet says none; without one the fleet has to.",
        "enum": "The values that it may have.",
        "minimum": "The least value.",
        "maximum": "The greatest value.",
        "pattern": "What a text has to match somewhere, in Python's dialect.",
    },
    "a slot": {
        "interface": "The interface that the provider has to have.",
        "request": "What is asked of the provider, by field of the interface.",
        "reach": "One placement, the one on the same machine, or all as a set by machine.",
        "follow": "Whether a move of the provider's key restarts this, or changed values only.",
        "requires": "How many placements have to be readable.",
    },
    "a slot's requires": {"count": "A requirement on the count of readable placements."},
    "a provide": {
        "interface": "The interface that it provides.",
        "scope": "Who may be answered: the same machine, or the whole fleet.",
        "follow": "What its consumers follow, where they do not say.",
        "credentials": "Whether each consumer gets a login and a sealed credential of its own.",
        "grants": "Where the provider's machine gets the file of its consumers.",
        "exports": "What a consumer is given, by export: one variant, or a list of them.",
    },
    "an export": {
        "lifecycle": "When the value is known: in the plan, from a fact, or while it runs.",
        "when": "The settings that this variant is for; the first that fits is taken.",
        "access": "Whether it can be read from other machines.",
        "value": "The value, with references.",
        "fact": "The fact of the provider's machine that is the value.",
        "source": "Where the value comes from while the service runs.",
    },
    "a source": {
        "file": "A file whose text is the value.",
        "command": "A command whose output is the value.",
        "every": "How often the command is run.",
        "published": "The service itself publishes it through its agent.",
    },
    "a reaction": {
        "reaction": "What a new value does to the unit that reads it.",
        "onMissing": "What happens when the provider says that there is none.",
        "maxStaleness": "How long the unit may run with a value that may be wrong.",
    },
    "a listen": {
        "protocol": "The protocol.",
        "port": "The number, where the protocol fixes it; otherwise one is assigned.",
    },
    "a volume": {"path": "The directory."},
    "a secret": {
        "length": "How many characters.",
        "owner": "The account that may read it.",
    },
    "a bucket": {"history": "How many values of a key are kept."},
    "a zone": {"name": "The name of the zone.", "listen": "The listen that answers it."},
    "a seat": {
        "scope": "Where there is one of it.",
        "verbs": "What it can be asked to do, by name.",
    },
    "a verb": {"command": "What is run."},
    "a requirement": {
        "subject": "The fact that is asked for.",
        "predicate": "What it has to be.",
        "severity": "Whether a machine that fails it is left out, or only the last choice.",
        "value": "What it has to equal.",
        "values": "The values, one of which it has to be.",
        "bounds": 'The bounds, such as ">= 2, < 8".',
        "pattern": "What it has to match, in Python's dialect.",
    },
    "a count requirement": {
        "predicate": "What the count has to be.",
        "severity": "Whether it is an error or a warning.",
        "value": "What it has to equal.",
        "values": "The values, one of which it has to be.",
        "bounds": 'The bounds, such as ">= 1".',
    },
    "a unit": {
        "kind": "What it is.",
        "env": "Its environment variables; references in values, not in names.",
        "configData": "Files that it reads, by path, which takes no references; a change reloads it.",
        "health": "How it is found to be well.",
        "reload": "How it is told to read its files again.",
        "restart": "When it is started again after it ended.",
        "stopTimeout": "How long it may take to stop.",
        "handover": "Whether the old one is stopped before or after the new one is well.",
        "replaces": "The unit that it takes over from.",
        "limits": "What it may use.",
        "command": "The command and its arguments.",
        "archive": "The archive that it runs in; an artifact of build.archives.",
        "bundle": "The bundle that it runs in; an artifact of build.bundles.",
        "nix": "What it runs of a Nix store; an artifact of build.nix.",
        "user": "The account that it runs as.",
        "workingDirectory": "Where it runs.",
        "image": "The image; an artifact of build.images or build.upstream.",
        "publish": "By listen: the port of the container; or a list of fixed mappings.",
        "mounts": 'By path in the container: a path of the machine, or "volume:NAME".',
        "unit": "A systemd unit that the machine has.",
        "file": f"A systemd unit that the module ships, {_PATH_IN_MODULE}.",
        "runOnce": "Run once for each digest, before the entry's other units.",
        "schedule": "When it is run, as systemd's calendar has it.",
        "whileStopped": "The container that is stopped meanwhile.",
    },
    "a configData file": {
        "file": f"What the module ships, {_PATH_IN_MODULE}; its bytes are not looked into.",
        "text": "The text, with references.",
    },
    "a reload": {"signal": "The signal, such as HUP.", "command": "The command."},
    "a health check": {
        "http": "A URL that answers with a status below 400.",
        "tcp": "A HOST:PORT that takes a connection.",
        "command": "A command that ends with status 0.",
        "interval": "How often.",
        "timeout": "How long one may take.",
        "retries": "How many may fail in a row.",
        "startPeriod": "How long failures do not count after a start.",
    },
    "limits": {
        "memory": "The most memory, such as 256M.",
        "cpu": "The most of a processor, such as 50%.",
        "tasks": "The most processes and threads.",
    },
    "a resource": {
        "type": "What it is.",
        "path": "Where it stands on the machine.",
        "text": "The text, with references.",
        "file": f"What the module ships, {_PATH_IN_MODULE}.",
        "mode": 'The mode, such as "0644".',
        "owner": "The account that owns it.",
        "group": "The group that owns it.",
        "adopt": "Whether a file that was there before may be taken over.",
        "archive": "The artifact that is unpacked there.",
        "name": "The name on the machine.",
        "version": "The version of the package.",
        "home": "The account's home.",
        "shell": "The account's shell.",
        "groups": "Further groups of the account.",
        "entries": "By address: the names.",
    },
    "a build": {
        "archives": "Directories that are packed, by name.",
        "images": "Images that are built from a Dockerfile, by name.",
        "upstream": "Images that others built, by name.",
        "bundles": "What a toolchain makes of this directory, by name.",
        "nix": "Paths of a Nix store, by name.",
        "shared": "Paths of the repository whose change asks for a build as well.",
    },
    "an archive": {"directory": f"The directory, {_PATH_IN_MODULE}."},
    "an image": {
        "dockerfile": f"The Dockerfile, {_PATH_IN_MODULE}.",
        "context": f"What the build sees, {_PATH_IN_MODULE}.",
    },
    "an upstream image": {"image": "The image, with a tag or a digest."},
    "a bundle": {
        "toolchain": "What makes it, as MODULE/ARTIFACT.",
        "command": "The command that makes it.",
        "output": f"The directory that it leaves, {_PATH_IN_MODULE}.",
    },
    "a nix artifact": {
        "path": "A path of the store.",
        "expression": f"An expression that gives one, {_PATH_IN_MODULE}.",
    },
    "a fact snapshot": {
        "machine": "The machine.",
        "at": "When they were taken.",
        "facts": "The facts, by name.",
    },
}

DEFAULTS: Final[Mapping[tuple[str, str], Json]] = {
    ("a machine", "platform"): "linux/amd64",
    ("a machine", "local"): False,
    ("a machine", "exec"): False,
    ("a debounce", "window"): "30s",
    ("a debounce", "burst"): 3,
    ("a restart budget", "perUnit"): 5,
    ("a restart budget", "window"): "1h",
    ("an instance", "onFact"): "hold",
    ("a slot", "reach"): "one",
    ("a slot", "follow"): "key",
    ("a provide", "scope"): "machine",
    ("a provide", "credentials"): False,
    ("a reaction", "onMissing"): "keep-last",
    ("a secret", "length"): 32,
    ("a bucket", "history"): 1,
    ("a seat", "scope"): "machine",
    ("a requirement", "severity"): "require",
    ("a count requirement", "severity"): "require",
}
"""Those that the contract states."""


def described(owner: str, name: str, schema: dict[str, Json]) -> dict[str, Json]:
    """The schema of one field with what is said of it."""
    about = DESCRIPTION if name == "description" else FIELDS.get(owner, {}).get(name)
    found = dict(schema) if about is None else {"description": about, **schema}
    if (owner, name) in DEFAULTS:
        found["default"] = DEFAULTS[owner, name]
    return found
