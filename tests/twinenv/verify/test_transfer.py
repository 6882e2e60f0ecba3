"""Level 4: equal returns where draws are taped, equivalent means where they are not."""

import numpy as np
import pytest

from twinenv.fields import Field
from twinenv.verify import Budget, run
from twinenv.verify.pair import Margin

ONE = Budget(rows=1)


def clever(obs, mask, number):
    """Attack, unless burned: then rest."""
    return np.where(obs[:, 3] > 0, 2, 0).astype(np.int32)


def foolish(obs, mask, number):
    """Charge for ever."""
    return np.ones(len(obs), np.int32)


@pytest.fixture
def trained(duel_pair):
    def made(actor=clever, **options):
        pair = duel_pair(**options)
        pair.asked = []

        def train(configuration, side, seed, max_steps):
            pair.asked.append((configuration, side, seed, max_steps))
            return actor if callable(actor) else actor[side, seed]

        pair.train = train
        return pair

    return made


def test_equal_sides_give_equal_returns_in_both_directions(trained):
    pair = trained()
    result = run(pair, 4, budget=ONE, seed=5)
    assert (result.status, result.rows) == ("passed", 2 * pair.num_envs)
    assert pair.asked == [("normal", "fast", 5, 1), ("normal", "arena", 5, 1)]
    for told in result.details["transfer"]:
        assert told["mean return on the twin"] == told["mean return on the reference"]
        assert told["mean return on the reference"] > told["mean return at random"]
        assert (told["ties"], told["cut"]) == (0, 0)


def test_a_fault_that_matters_to_play_shows_in_the_returns(trained):
    def hasty(obs, mask, number):
        return np.zeros(len(obs), np.int32)

    result = run(trained(hasty, fault="weak"), 4, budget=ONE, configurations=["hard"])
    assert result.status == "failed"
    found = result.divergences[0]
    assert (found.level, found.field) == (4, "return")
    assert found.expected != found.got
    assert 0 < found.rows_affected <= found.rows_total


def test_training_that_came_to_nothing_is_visible(trained):
    result = run(trained(foolish), 4, budget=ONE)
    assert result.status == "partial"
    assert "no better than random play" in result.skipped[0]


def test_a_missing_reference_means_not_run(trained):
    assert run(trained(installed=False), 4, budget=ONE).status == "not run"


def nudge(before, actions, step):
    """Observations that are off by less than their tolerance."""
    step.output["observation"] = step.output["observation"] + np.float32(1e-4)
    return step


def on_the_edge(obs, mask, number):
    return np.where(obs[:, 0] > 1.0, 0, 1).astype(np.int32)


def test_ties_within_the_tolerance_are_counted_and_few(trained):
    pair = trained(on_the_edge, tamper=nudge)
    close = Field("seen", "float32", shape=(4,), atol=1e-3, why="a test")
    pair.schema = {**pair.schema, "observation": close}
    result = run(pair, 4, budget=ONE)
    assert any("part at a tie" in d.message for d in result.divergences)
    assert result.details["transfer"][0]["ties"] > 0


def varied(strength):
    def act(obs, mask, number):
        return np.where((obs[:, 3] > 0) & (obs[:, 0] < strength), 2, 0).astype(np.int32)

    return act


def test_with_a_margin_the_means_must_be_equivalent(trained):
    actors = {
        (side, seed): varied(0.5 + seed / 10) for side in ("fast", "arena") for seed in range(4)
    }
    pair = trained(actors)
    pair.margin = Margin(0.1, "a test", seeds=4)
    result = run(pair, 4, budget=ONE)
    assert result.status == "passed", [d.message for d in result.divergences]
    assert "power 1.00" in result.details["transfer"][0]["test"]
    assert [seed for _, side, seed, _ in pair.asked if side == "fast"] == [0, 1, 2, 3]


def test_different_or_underpowered_means_fail(trained):
    pair = trained(varied(0.5), fault="weak")
    pair.margin = Margin(0.01, "a test", seeds=3)
    messages = [d.message for d in run(pair, 4, budget=ONE, configurations=["hard"]).divergences]
    assert messages
    assert all(m.startswith(("underpowered", "not equivalent")) for m in messages)
