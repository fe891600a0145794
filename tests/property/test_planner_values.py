"""Values and their canonical form, on any text."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.planner import canonical
from tests.property.planner_fleets import planned

text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"))
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | text
    | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(text, inner), max_leaves=20
)


def whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return value


@given(values)
def test_canonical_is_sorted_json_without_white_space_or_escapes(value: Any) -> None:
    expected = json.dumps(whole(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    assert canonical.encode(value) == expected.encode()


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), text, min_size=1))
def test_a_setting_arrives_as_it_was_written(said: dict[str, str]) -> None:
    role = {
        "settings": {name: {"type": "string"} for name in said},
        "units": {
            "u": {
                "kind": "process",
                "command": ["x", *(f"<${{settings.{name}}}>" for name in sorted(said))],
                "env": {name: f"${{settings.{name}}}" for name in said},
                "configData": {
                    "/c": {"text": "".join(f"${{settings.{name}}}" for name in sorted(said))}
                },
            }
        },
    }
    result = planned(
        {
            "fleet.json": {
                "fleet": "drawn",
                "machines": {"alpha": {"address": "a"}},
                "instances": {
                    "i": {
                        "module": "m",
                        "settings": {"main": said},
                        "placement": {"every": {"main": {}}},
                    }
                },
            },
            "modules/m/module.json": {"module": "m", "version": "1", "roles": {"main": role}},
        }
    )
    unit = result.plan.entries["i:main@alpha"].units["u"]
    assert unit.env == said
    assert unit.command == ["x", *(f"<{said[name]}>" for name in sorted(said))]
    content = "".join(said[name] for name in sorted(said)).encode()
    assert result.contents[str(unit.config_data["/c"])] == content
