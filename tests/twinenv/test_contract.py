"""Every registered environment, the toys and their wrappers keep the contract."""

import functools

import pytest
from contract import Contract
from contract_play import Case
from toys import Corridor, Duel

import twinenv
from twinenv.wrappers import (
    EpisodeStatistics,
    FlattenObservation,
    FrameStack,
    LegalActions,
    versus,
)


def _plain(env):
    return env, env.default_params


# Parameters under which random play ends soon; an id that is not here is played as it is.
QUICK = {"PongJAX-v0": {"max_score": 1, "ball_initial_speed_x": 100}}

# What is particular to an environment. Simulated physics is not rounded alike by two programs; of
# its numbers, an acceleration shows that most.
OWN = {"HalfCheetahJAX-v0": {"rtol": 1e-3, "pays_excess": True, "wide": True}}

CASES = {
    **{
        env_id: Case(
            functools.partial(twinenv.make, env_id, **QUICK.get(env_id, {})),
            ends=env_id in QUICK,
            **OWN.get(env_id, {}),
        )
        for env_id in twinenv.list_ids()
    },
    "continuous Pong": Case(
        functools.partial(
            twinenv.make, "PongJAX-v0", frameskip=8, continuous=True, max_score=1, paddle_height=30
        )
    ),
    "Corridor": Case(lambda: _plain(Corridor())),
    "Duel": Case(lambda: _plain(Duel())),
    "Corridor, all of it wrapped": Case(
        lambda: _plain(
            EpisodeStatistics(FrameStack(FlattenObservation(LegalActions(Corridor())), 3))
        )
    ),
    "Duel against a random player, wrapped": Case(
        lambda: _plain(
            EpisodeStatistics(FrameStack(versus(LegalActions(Duel()), "random", seat="random"), 2))
        )
    ),
}


@pytest.fixture(scope="module", params=list(CASES))
def case(request):
    return CASES[request.param]


class TestContract(Contract):
    pass
