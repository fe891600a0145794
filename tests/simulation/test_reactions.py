"""Dynamic values under drawn trouble; and for each promise a product without its guard."""

import os
from collections.abc import Callable

import pytest

from keyplane.converge import reaction
from keyplane.converge.reaction_state import News, Told
from tests.simulation import mutants, reactions

SEEDS = int(os.environ.get("KEYPLANE_TEST_REACTION_SEEDS", "60"))

pytestmark = pytest.mark.slow

Patch = pytest.MonkeyPatch


@pytest.mark.timeout(300)
def test_no_promise_is_broken() -> None:
    assert reactions.first_broken(range(SEEDS)) == (-1, "")


def takes_old_words(patch: Patch) -> None:
    step = reaction.step

    def forgetful(state, event):
        if isinstance(event, Told):
            news = tuple(
                News(export=each.export, value=each.value, number=10**6) for each in event.news
            )
            event = Told(now_ms=event.now_ms, news=news)
        return step(state, event)

    patch.setattr(reaction, "step", forgetful)


MUTANTS: dict[Callable[[Patch], None], tuple[str, ...]] = {
    mutants.closes_windows_at_once: (reactions.SINGLE,),
    mutants.has_budget_always: (reactions.BUDGET,),
    mutants.restarts_for_any_word: (reactions.FRESH, reactions.SINGLE),
    mutants.takes_silence_for_missing: (reactions.WORD,),
    takes_old_words: (reactions.WORD, reactions.LAST, reactions.FRESH),
    mutants.keeps_no_turn: (reactions.LAST,),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
def test_a_promise_without_its_guard_is_found_broken(mutant, monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    _, broken = reactions.first_broken(range(SEEDS))
    assert broken.startswith(MUTANTS[mutant]), broken or "nobody saw"
