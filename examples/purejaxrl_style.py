"""PPO in one jitted function, in the style of PureJaxRL: the five-value step, `vmap`, `scan`."""

import argparse
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import twinenv
from twinenv.wrappers import EpisodeStatistics

NUM_ENVS, NUM_STEPS, EPOCHS, MINIBATCHES = 64, 32, 4, 8
GAMMA, LAMBDA, CLIP, ENTROPY = 0.99, 0.95, 0.2, 0.005


class ActorCritic(nn.Module):
    actions: int

    @nn.compact
    def __call__(self, x):
        actor = nn.tanh(nn.Dense(32)(nn.tanh(nn.Dense(32)(x))))
        critic = nn.tanh(nn.Dense(32)(nn.tanh(nn.Dense(32)(x))))
        return nn.log_softmax(nn.Dense(self.actions)(actor)), nn.Dense(1)(critic)[..., 0]


class Transition(NamedTuple):
    obs: jax.Array
    action: jax.Array
    log_prob: jax.Array
    value: jax.Array
    reward: jax.Array
    done: jax.Array
    info: dict


def make_train(env, params, updates):  # noqa: PLR0915 - one closure, as in PureJaxRL
    network = ActorCritic(env.num_actions)
    optimiser = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-3))
    reset, step = jax.vmap(env.reset, (0, None)), jax.vmap(env.step, (0, 0, 0, None))

    def play(carry, _):
        weights, obs, state, key = carry
        key, key_act, key_step = jax.random.split(key, 3)
        log_probs, value = network.apply(weights, obs)
        action = jax.random.categorical(key_act, log_probs)
        log_prob = jnp.take_along_axis(log_probs, action[:, None], 1)[:, 0]
        keys = jax.random.split(key_step, NUM_ENVS)
        following, state, reward, done, info = step(keys, state, action, params)
        transition = Transition(obs, action, log_prob, value, reward, done, info)
        return (weights, following, state, key), transition

    def advantages(batch, last_value):
        def back(carry, t):
            advantage, next_value = carry
            going = 1.0 - t.done
            delta = t.reward + GAMMA * next_value * going - t.value
            advantage = delta + GAMMA * LAMBDA * going * advantage
            return (advantage, t.value), advantage

        start = jnp.zeros_like(last_value), last_value
        return jax.lax.scan(back, start, batch, reverse=True)[1]

    def loss(weights, t, advantage, target):
        log_probs, value = network.apply(weights, t.obs)
        log_prob = jnp.take_along_axis(log_probs, t.action[:, None], 1)[:, 0]
        ratio = jnp.exp(log_prob - t.log_prob)
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        clipped = jnp.clip(ratio, 1 - CLIP, 1 + CLIP)
        policy = -jnp.minimum(ratio * advantage, clipped * advantage).mean()
        entropy = -jnp.sum(jnp.exp(log_probs) * log_probs, axis=-1).mean()
        return policy + 0.5 * jnp.square(value - target).mean() - ENTROPY * entropy

    def learn(carry, minibatch):
        weights, moments = carry
        change, moments = optimiser.update(jax.grad(loss)(weights, *minibatch), moments, weights)
        return (optax.apply_updates(weights, change), moments), None

    def update(carry, _):
        weights, moments, obs, state, key = carry
        played = jax.lax.scan(play, (weights, obs, state, key), None, NUM_STEPS)
        (_, obs, state, key), batch = played
        advantage = advantages(batch, network.apply(weights, obs)[1])
        data = (batch._replace(info={}), advantage, advantage + batch.value)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), data)
        key, *keys = jax.random.split(key, 1 + EPOCHS)
        orders = [jax.random.permutation(k, NUM_ENVS * NUM_STEPS) for k in keys]
        order = jnp.concatenate(orders).reshape(EPOCHS * MINIBATCHES, -1)
        minibatches = jax.tree.map(lambda x: x[order], flat)
        (weights, moments), _ = jax.lax.scan(learn, (weights, moments), minibatches)
        info = batch.info
        ended, returns = info["returned_episode"], info["returned_episode_returns"]
        mean = jnp.sum(returns * ended) / jnp.maximum(jnp.sum(ended), 1)
        return (weights, moments, obs, state, key), mean

    @jax.jit
    def train(key):
        key, key_net, key_env = jax.random.split(key, 3)
        obs, state = reset(jax.random.split(key_env, NUM_ENVS), params)
        weights = network.init(key_net, obs)
        carry = weights, optimiser.init(weights), obs, state, key
        return jax.lax.scan(update, carry, None, updates)

    return train


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--updates", type=int, default=200)
    updates = parser.parse_args().updates
    env, params = twinenv.make("PongJAX-v0", frameskip=8, max_score=1)
    _, returns = make_train(EpisodeStatistics(env), params, updates)(jax.random.key(0))
    for i in range(0, updates, max(1, updates // 10)):
        print(f"update {i}: mean return {float(returns[i]):+.2f}")
    print(f"last: mean return {float(returns[-1]):+.2f}")
