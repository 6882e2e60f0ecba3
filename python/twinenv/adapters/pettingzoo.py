"""Two-player environments in the shapes of JaxMARL and of PettingZoo's parallel API.

Neither package is needed: the views have the methods that code written for them calls.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from twinenv.adapters.convert import to_gymnasium, to_numpy
from twinenv.env import Environment

__all__ = ["AGENTS", "MultiAgentView", "ParallelView"]

AGENTS = ("player_0", "player_1")
"""Names of the two seats."""


@dataclasses.dataclass(frozen=True)
class MultiAgentView:
    """JaxMARL's shape: pure functions, with a dictionary by agent wherever agents differ.

    Attributes:
        env: a two-player environment.
        params: its parameters; None stands for its own.
    """

    env: Environment[Any, Any]
    params: Any = None

    def __post_init__(self) -> None:
        if self.env.num_players != 2:
            raise TypeError(f"{self.env.name} has one player; this view is for two")
        object.__setattr__(self, "params", self.env.resolve(self.params))

    @property
    def name(self) -> str:
        """Canonical id."""
        return self.env.name

    @property
    def agents(self) -> list[str]:
        """Names of the agents."""
        return list(AGENTS)

    @property
    def num_agents(self) -> int:
        """Two."""
        return len(AGENTS)

    @property
    def action_spaces(self) -> dict[str, Any]:
        """Space of each agent's action."""
        return {agent: self.action_space(agent) for agent in AGENTS}

    @property
    def observation_spaces(self) -> dict[str, Any]:
        """Space of each agent's observation."""
        return {agent: self.observation_space(agent) for agent in AGENTS}

    def action_space(self, agent: str) -> Any:
        """Space of an agent's action."""
        _check_agent(agent)
        return self.env.action_space(self.params)

    def observation_space(self, agent: str) -> Any:
        """Space of an agent's observation."""
        _check_agent(agent)
        return self.env.observation_space(self.params)

    def reset(self, key: jax.Array) -> tuple[dict[str, Any], Any]:
        """Observations by agent, and the state."""
        obs, state = self.env.reset(key, self.params)
        return _by_agent(obs), state

    def step(
        self, key: jax.Array, state: Any, actions: dict[str, Any], reset_state: Any = None
    ) -> tuple[dict[str, Any], Any, dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Observations, state, rewards, dones (with "__all__") and info; with automatic reset.

        Args:
            key: key.
            state: state.
            actions: `int32` by agent.
            reset_state: the state to go on from if the episode ends; None begins a new episode.
        """
        return self._step(self.env.step, key, state, actions, reset_state)

    def step_env(
        self, key: jax.Array, state: Any, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], Any, dict[str, Any], dict[str, Any], dict[str, Any]]:
        """`step` without automatic reset and time limit."""
        return self._step(self.env.step_env, key, state, actions, None)

    def _step(
        self, step: Any, key: jax.Array, state: Any, actions: dict[str, Any], reset_state: Any
    ) -> Any:
        obs, state, reward, done, info = step(key, state, _joint(actions), self.params)
        if reset_state is not None:
            other = self.env.reset_to(key, reset_state, self.params)
            obs, state = jax.tree.map(
                lambda new, old: jnp.where(done, new, old), other, (obs, state)
            )
        dones = dict.fromkeys((*AGENTS, "__all__"), done)
        return _by_agent(obs), state, _by_agent(reward), dones, info

    def get_obs(self, state: Any) -> dict[str, Any]:
        """Observations by agent."""
        return _by_agent(self.env.get_obs(state, self.params))

    def get_avail_actions(self, state: Any) -> dict[str, jax.Array]:
        """Legal actions by agent, `uint8[num_actions]` of 0 and 1."""
        mask = self.env.action_mask(state, self.params).astype(jnp.uint8)
        return _by_agent(mask)


class ParallelView:
    """PettingZoo's parallel shape: a running game with host arrays.

    Every agent's info holds its `action_mask: int8[num_actions]`.

    Args:
        env: a two-player environment.
        params: its parameters; None stands for its own.
    """

    def __init__(self, env: Environment[Any, Any], params: Any = None) -> None:
        self._view = MultiAgentView(env, params)
        self.metadata = {"name": env.name, "render_modes": ["rgb_array"], "is_parallelizable": True}
        self.render_mode = "rgb_array"
        self.possible_agents = list(AGENTS)
        self.agents: list[str] = []
        self.action_spaces = {a: to_gymnasium(s) for a, s in self._view.action_spaces.items()}
        spaces = self._view.observation_spaces
        self.observation_spaces = {agent: to_gymnasium(space) for agent, space in spaces.items()}
        self._key: Any = None
        self._state: Any = None
        self._reset = jax.jit(self._view.reset)
        self._step = jax.jit(self._advance)
        self._avail = jax.jit(self._view.get_avail_actions)

    @property
    def unwrapped(self) -> ParallelView:
        """Itself."""
        return self

    @property
    def num_agents(self) -> int:
        """How many still play."""
        return len(self.agents)

    @property
    def max_num_agents(self) -> int:
        """Two."""
        return len(self.possible_agents)

    def action_space(self, agent: str) -> Any:
        """Gymnasium space of an agent's action."""
        return self.action_spaces[agent]

    def observation_space(self, agent: str) -> Any:
        """Gymnasium space of an agent's observation."""
        return self.observation_spaces[agent]

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Observations and infos by agent; without a seed the random stream goes on."""
        if seed is not None or self._key is None:
            fresh = int(np.random.default_rng().integers(2**31)) if seed is None else seed
            self._key = jax.random.key(fresh % 2**32)
        self._key, key = jax.random.split(self._key)
        obs, self._state = self._reset(key)
        self.agents = list(AGENTS)
        return self._observations(obs), self._infos({})

    def step(self, actions: dict[str, Any]) -> tuple[dict[str, Any], ...]:
        """Observations, rewards, terminations, truncations and infos by agent.

        Raises:
            RuntimeError: the game is over or was never begun.
        """
        if not self.agents:
            raise RuntimeError("no game is going on; call reset")
        self._key, key = jax.random.split(self._key)
        obs, self._state, reward, terminated, truncated, info = self._step(
            key, self._state, {agent: actions[agent] for agent in AGENTS}
        )
        told = ("terminated", "truncated", "discount", "final_observation")
        outcomes = {k: v for k, v in jax.device_get(info).items() if k not in told}
        result = (
            self._observations(obs),
            {agent: float(reward[agent]) for agent in AGENTS},
            dict.fromkeys(AGENTS, bool(terminated)),
            dict.fromkeys(AGENTS, bool(truncated)),
            self._infos(outcomes),
        )
        if terminated or truncated:
            self.agents = []
        return result

    def _advance(self, key: jax.Array, state: Any, actions: dict[str, Any]) -> Any:
        obs, state, reward, dones, info = self._view.step_env(key, state, actions)
        over = self._view.env.is_truncated(state, self._view.params)
        return obs, state, reward, dones["__all__"], ~dones["__all__"] & over, info

    def _observations(self, obs: dict[str, Any]) -> dict[str, Any]:
        return {agent: to_numpy(self.observation_spaces[agent], obs[agent]) for agent in AGENTS}

    def _infos(self, outcomes: dict[str, Any]) -> dict[str, Any]:
        masks = jax.device_get(self._avail(self._state))
        own = {name: outcomes.pop(name) for name in ("illegal_action", "to_move") if outcomes}
        return {
            agent: {
                "action_mask": masks[agent].astype(np.int8),
                **{name: bool(value[seat]) for name, value in own.items()},
                **outcomes,
            }
            for seat, agent in enumerate(AGENTS)
        }

    def state(self) -> np.ndarray:
        """Both observations in one flat array."""
        obs = jax.device_get(self._view.get_obs(self._state))
        return np.concatenate([np.ravel(x).astype(np.float32) for x in jax.tree.leaves(obs)])

    def render(self) -> np.ndarray:
        """Picture of the current state, `uint8[height, width, 3]`."""
        return self._view.env.render(self._state, self._view.params)

    def close(self) -> None:
        """Nothing is held open."""


def _by_agent(pair: Any) -> dict[str, Any]:
    return {agent: jax.tree.map(lambda x, i=i: x[i], pair) for i, agent in enumerate(AGENTS)}


def _joint(actions: dict[str, Any]) -> jax.Array:
    if set(actions) != set(AGENTS):
        raise ValueError(f"actions are of {sorted(actions)}; accepted is one of each of {AGENTS}")
    return jnp.stack([jnp.asarray(actions[agent]) for agent in AGENTS])


def _check_agent(agent: str) -> None:
    if agent not in AGENTS:
        raise ValueError(f"agent is {agent!r}; accepted are {AGENTS}")
