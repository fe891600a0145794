"""Dynamic values under drawn trouble; and for each promise a product without its guard."""

import os
from collections.abc import Callable

import pytest

from keyplane.converge import dynamic, reaction, reaction_limits
from keyplane.converge.reaction_state import News, Sounded, Told
from tests.simulation import reactions

SEEDS = int(os.environ.get("KEYPLANE_TEST_REACTION_SEEDS", "60"))

pytestmark = pytest.mark.slow

Patch = pytest.MonkeyPatch


@pytest.mark.timeout(300)
def test_no_promise_is_broken() -> None:
    assert reactions.first_broken(range(SEEDS)) == (-1, "")


def closes_windows_at_once(patch: Patch) -> None:
    patch.setattr(reaction_limits, "closes_ms", lambda state: state.opened_ms)


def has_budget_always(patch: Patch) -> None:
    patch.setattr(reaction_limits, "has_budget", lambda unit, rates, now_ms: True)
    patch.setattr(reaction_limits, "budget_ms", lambda unit, rates: 0)


def restarts_for_any_word(patch: Patch) -> None:
    taken = dynamic.is_outdated

    def nervous(memory, unit):
        return taken(memory, unit) or (unit is not None and unit.collapsed > 2)

    patch.setattr(dynamic, "is_outdated", nervous)


def takes_silence_for_missing(patch: Patch) -> None:
    step = reaction.step

    def hasty(state, event):
        if isinstance(event, Sounded) and event.is_silent:
            news = tuple(
                News(export=each, value=None, number=known.number)
                for each in event.exports
                if (known := state.exports.get(each)) is not None
            )
            return step(state, Told(now_ms=event.now_ms, news=news))
        return step(state, event)

    patch.setattr(reaction, "step", hasty)


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


def keeps_no_turn(patch: Patch) -> None:
    patch.setattr(dynamic, "is_outdated", lambda memory, unit: False)


MUTANTS: dict[Callable[[Patch], None], tuple[str, ...]] = {
    closes_windows_at_once: (reactions.SINGLE,),
    has_budget_always: (reactions.BUDGET,),
    restarts_for_any_word: (reactions.FRESH, reactions.SINGLE),
    takes_silence_for_missing: (reactions.WORD,),
    takes_old_words: (reactions.WORD, reactions.LAST, reactions.FRESH),
    keeps_no_turn: (reactions.LAST,),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
def test_a_promise_without_its_guard_is_found_broken(mutant, monkeypatch: Patch) -> None:
    mutant(monkeypatch)
    _, broken = reactions.first_broken(range(SEEDS))
    assert broken.startswith(MUTANTS[mutant]), broken or "nobody saw"
