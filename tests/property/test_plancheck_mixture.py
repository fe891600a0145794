"""A mixture is judged by what is otherwise than in a sound one as it is judged whole."""

from hypothesis import given, settings
from hypothesis import strategies as st

from keyplane.model.names import EntryId
from keyplane.model.plan import Edge, Entry
from keyplane.plancheck.mixture import check_mixture
from tests.unit.rollout.values import planned

POOL = [
    planned("1").entry,
    planned("1", listens={"p": 5432}).entry,
    planned("2", listens={"p": 5432, "q": 20_001}).entry,
    planned("2", listens={"p": 20_001}).entry,
    planned("3", volumes={"data": "/srv"}).entry,
    planned("4", volumes={"data": "/srv"}, listens={"p": 80_000}).entry,
]
NAMES = [EntryId(f"{name}:main@{machine}") for name in "abc" for machine in "xyz"]
MIXTURES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(POOL), max_size=len(NAMES))
CHANGES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from([None, *POOL]), max_size=3)
EDGES = st.lists(
    st.builds(
        lambda consumer, provider: Edge(
            consumer=consumer, slot="s", provider=provider, provide="p", chosen="only"
        ),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    max_size=2,
)


@settings(max_examples=300, deadline=None)
@given(MIXTURES, st.lists(st.tuples(CHANGES, EDGES), max_size=5))
def test_what_is_otherwise_is_judged_as_the_whole_is(
    first: dict[EntryId, Entry], later: list[tuple[dict[EntryId, Entry | None], list[Edge]]]
) -> None:
    """Step after step, each by the last one in which nothing was found."""
    sound: dict[EntryId, Entry] | None = None
    now = first
    for changes, edges in [({}, []), *later]:
        made = {**now, **changes}
        now = {name: each for name, each in made.items() if each is not None}
        whole = check_mixture(now, edges)
        assert check_mixture(now, edges, sound=sound) == whole
        if not whole:
            sound = now
