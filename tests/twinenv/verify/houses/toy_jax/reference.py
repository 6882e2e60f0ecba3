"""The duel in plain Python, one object per environment; it can be told to break a rule."""

import numpy as np

from twinenv.references import MissingReferenceError
from twinenv.verify.pair import Step

FAULTS = ("burn", "cap", "rest", "reset", "weak")


class Duel:
    def __init__(self, hard, fault):
        self.hard, self.fault = hard, fault
        self.restart()

    def restart(self):
        self.hp, self.boost, self.burned = [12 if self.hard else 20, 20], 0, False

    def step(self, action, roll):
        if action == 0:
            damage = (1 if self.fault == "weak" else 4) + 2 * self.boost + roll
            if self.burned and not (self.fault == "burn" and self.boost >= 2):
                damage //= 2
            self.hp[1] -= damage
        elif action == 1:
            self.boost = min(self.boost + 1, 2 if self.fault == "cap" else 3)
        elif action == 2:
            self.hp[0] = min(self.hp[0] + (4 if self.fault == "rest" else 3), 20)
            self.burned = False
        if self.hp[1] > 0:
            self.hp[0] -= 2 + roll // 2
            self.burned = self.burned or roll == 3
        won, lost = self.hp[1] <= 0, self.hp[0] <= 0
        seen = self.seen()
        if won or lost:
            boost = self.boost
            self.restart()
            self.boost = boost if self.fault == "reset" else 0
            seen = self.seen()
        return seen, float(won) - float(lost), won or lost

    def seen(self):
        return [*self.hp, self.boost, self.burned]


class Arena:
    """`num_envs` duels as a verifier backend."""

    def __init__(self, num_envs, *, hard=False, fault="", installed=True, dumps=True):
        if not installed:
            raise MissingReferenceError("the arena is not installed; run `install arena`")
        self.num_envs, self.dumps = num_envs, dumps
        self.duels = [Duel(hard, fault) for _ in range(num_envs)]
        self.fed = None

    def reset(self, seed):
        self.rng = np.random.default_rng(seed)
        for duel in self.duels:
            duel.restart()
        return Step(self.dump(), {"observation": self.observation()})

    def feed(self, draws):
        self.fed = draws["roll"]

    def step(self, actions):
        rolls = self.rng.integers(0, 4, self.num_envs, dtype=np.uint32)
        rolls, self.fed = (rolls if self.fed is None else self.fed), None
        made = [
            duel.step(int(action), int(roll))
            for duel, action, roll in zip(self.duels, actions, rolls, strict=True)
        ]
        output = {
            "observation": self.observation(),
            "reward": np.array([reward for _, reward, _ in made], np.float32),
            "terminated": np.array([over for _, _, over in made], np.bool_),
        }
        return Step(self.dump(), output, {"roll": rolls.astype(np.uint32)})

    def load(self, state):
        for row, duel in enumerate(self.duels):
            duel.hp = [int(v) for v in state["hp"][row]]
            duel.boost, duel.burned = int(state["boost"][row]), bool(state["burned"][row])
        self.rng = np.random.default_rng(0)

    def dump(self):
        if not self.dumps:
            return {}
        return {
            "hp": np.array([duel.hp for duel in self.duels], np.int16),
            "boost": np.array([duel.boost for duel in self.duels], np.int16),
            "burned": np.array([duel.burned for duel in self.duels], np.bool_),
        }

    def observation(self):
        return np.array([duel.seen() for duel in self.duels], np.float32) / np.float32(16)

    def close(self):
        pass
