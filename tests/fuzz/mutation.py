"""Changes of a fleet that leave its documents readable: a value for another, a field gone or moved.

Changes of bytes alone seldom come past the parsers.
"""

import copy
import json
import random
import tomllib
from typing import Any

from tests.fuzz import loaders, star_words

Json = Any
ODD: tuple[Json, ...] = (
    None, True, False, 0, 1, -1, 1 << 62, 0.5, 1e300, "", "x", "a b", "0", "-1", "30s", "1000000d",
    "${", "$${x}", "${settings.n}", "${machine.address}", "${machine.name}", "${self.entry}",
    "${machine.facts.id}", "${consumer.request.a}", "${consumer.login}", "${results.db.dsn}",
    "${results.db.*.dsn}", "${results.db.alpha.dsn}", "${alloc.ports.game}", "${bound.db.address}",
    "${secrets.admin}", "${credentials.db}", "<${results.db.dsn}> ${settings.n}", "e\u0301\u2028",
    "/a", "../a", "alpha", "static", "probed", "dynamic", "all", "local", "mesh", "machine",
    "values", "any", [], {}, [[]], ["a"], {"a": 1}, {"": ""}, {"fact": "id", "lifecycle": "probed"},
    {"source": {"published": True}, "lifecycle": "dynamic"}, {"file": "b"}, {"text": "${settings.n}"},
)  # fmt: skip


def mutated(text: bytes, seed: int) -> bytes:
    """The fleet with some values of one document changed; the text itself where none is read."""
    # Equal seeds have to give equal changes, and nothing here is a secret.
    chance = random.Random(seed)
    files = loaders.files_of(text)
    computed = sorted(name for name in files if name.endswith(".star"))
    if computed and chance.random() < 0.5:
        name = chance.choice(computed)
        for _ in range(chance.randint(1, 3)):
            files[name] = star_words.mutated(files[name], chance)
        return loaders.text_of(files)
    trees = {name: tree for name, data in files.items() if (tree := _read(name, data)) is not None}
    if not trees:
        return text
    name = chance.choice(sorted(trees))
    tree = copy.deepcopy(trees[name])
    for _ in range(chance.randint(1, 4)):
        _change(tree, trees, chance)
    try:
        data = json.dumps(tree, default=str).encode()
    except (ValueError, RecursionError):
        return text
    spelled = name.removesuffix(".toml") + ".json"
    if name == "interfaces.toml" or name.endswith("/interfaces.toml"):
        return text  # of which there is but one spelling
    found = {spelled if one == name else one: old for one, old in files.items()}
    found[spelled] = data
    return loaders.text_of(found)


def _read(name: str, data: bytes) -> Json:
    try:
        if name.endswith(".toml"):
            return tomllib.loads(data.decode())
        return json.loads(data) if name.endswith(".json") else None
    except (ValueError, RecursionError):
        return None


def _change(tree: Json, trees: dict[str, Json], chance: random.Random) -> None:
    places = _places(tree)
    if not places:
        return
    holder, key = chance.choice(places)
    match chance.randint(0, 5):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[chance.choice([*_words(trees, chance), "x", "A", "/a", "db.dsn"])] = holder[key]
        case 2:
            other, its = chance.choice(_places(trees))
            holder[key] = copy.deepcopy(other[its])
        case 3 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        case _:
            holder[key] = copy.deepcopy(chance.choice(ODD))


def _words(trees: dict[str, Json], chance: random.Random) -> list[str]:
    return [str(key) for _, key in chance.sample(_places(trees), min(3, len(_places(trees))))]


def _places(tree: Json) -> list[tuple[Json, Json]]:
    """Every holder and key of a tree."""
    found: list[tuple[Json, Json]] = []
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found += [(one, key) for key in one]
            waiting += one.values()
        elif isinstance(one, list):
            found += [(one, index) for index in range(len(one))]
            waiting += one
    return found
