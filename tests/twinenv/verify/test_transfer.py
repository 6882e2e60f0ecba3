"""Level 4: equal returns where draws are taped, equivalent means where they are not."""

import io

import numpy as np
import pytest
from rich.console import Console

from twinenv.fields import Field
from twinenv.verify import Budget, run
from twinenv.verify.pair import Margin
from twinenv.verify.report import print_results

ONE = Budget(rows=1)


def clever(obs, mask, number):
    """Attack, unless burned: then rest."""
    return np.where(obs[:, 3] > 0, 2, 0).astype(np.int32)


def foolish(obs, mask, number):
    """Charge for ever."""
    return np.ones(len(obs), np.int32)


def hasty(obs, mask, number):
    """Strike for ever."""
    return np.zeros(len(obs), np.int32)


@pytest.fixture
def trained(duel_pair):
    def made(actor=clever, **options):
        pair = duel_pair(**options)
        pair.asked = []

        def train(configuration, side, seeds, max_steps):
            pair.asked.append((configuration, side, [*seeds], max_steps))
            return [actor if callable(actor) else actor[side, seed] for seed in seeds]

        pair.train = train
        return pair

    return made


def test_equal_sides_give_equal_returns_in_both_directions(trained):
    pair = trained()
    result = run(pair, 4, budget=ONE, seed=5)
    assert (result.status, result.rows) == ("passed", 2 * pair.num_envs)
    assert pair.asked == [("normal", "fast", [5], 1), ("normal", "arena", [5], 1)]
    for told in result.details["transfer"]:
        assert told["mean return on the twin"] == told["mean return on the reference"]
        assert told["mean return on the reference"] > told["mean return at random"]
        assert (told["ties"], told["cut"]) == (0, 0)


def test_a_fault_that_matters_to_play_shows_in_the_returns(trained):
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
    assert [seeds for _, side, seeds, _ in pair.asked if side == "fast"] == [[0, 1, 2, 3]]
    output = io.StringIO()
    print_results(pair, [result], Console(file=output, width=300))
    assert output.getvalue().count("margin 0.1, p 0, power 1.00, units 4 and 4") == 2


def test_with_a_margin_an_episode_may_be_over_after_some_steps(trained):
    """Returns are then those of the steps played, and none counts as cut."""
    pair = trained(clever)
    pair.margin = Margin(0.1, "a test", seeds=2, steps=2)
    short = run(pair, 4, budget=ONE).details["transfer"][0]
    pair.margin = Margin(0.1, "a test", seeds=2)
    whole = run(pair, 4, budget=ONE).details["transfer"][0]
    assert short["cut"] == 0
    assert short["mean return on the twin"] == short["mean return on the reference"]
    assert short["mean return on the twin"] != whole["mean return on the twin"]


class Unpaid:
    """A twin that pays nothing."""

    def __init__(self, fast):
        self.start, self._step = fast.start, fast.step

    def step(self, state, actions, draws):
        step = self._step(state, actions, draws)
        step.output["reward"] = np.zeros_like(step.output["reward"])
        return step


def test_policies_can_play_on_another_form_of_the_twin(trained):
    """On that which they were trained on; a fault in it shows, and an error in it is its own."""
    pair = trained(hasty)
    pair.as_trained = lambda configuration: Unpaid(pair.fast(configuration))
    assert run(pair, 4, budget=ONE).status == "failed"
    pair = trained(hasty)
    pair.as_trained = lambda configuration: 1 / 0
    told = run(pair, 4, budget=ONE).divergences[0]
    assert told.check == "fast side" and "division by zero" in told.message


def test_different_or_underpowered_means_fail(trained):
    pair = trained(varied(0.5), fault="weak")
    pair.margin = Margin(0.01, "a test", seeds=3)
    messages = [d.message for d in run(pair, 4, budget=ONE, configurations=["hard"]).divergences]
    assert messages
    assert all(m.startswith(("underpowered", "not equivalent")) for m in messages)
