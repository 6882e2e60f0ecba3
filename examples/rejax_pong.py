"""rejax's PPO, unedited, on Pong through the five-value API. `pip install rejax`."""

import argparse

import jax

import twinenv


def train(total_timesteps: int, eval_freq: int):
    """Mean return and length of 128 games at each evaluation."""
    import rejax

    env, params = twinenv.make("PongJAX-v0", frameskip=8, max_score=1, max_steps_in_episode=200)
    ppo = rejax.PPO.create(
        env=env,
        env_params=params,
        total_timesteps=total_timesteps,
        eval_freq=eval_freq,
        skip_initial_evaluation=True,
        num_envs=64,
        num_steps=32,
        num_epochs=4,
        num_minibatches=8,
        learning_rate=1e-3,
        max_grad_norm=0.5,
        ent_coef=0.005,
        agent_kwargs={"hidden_layer_sizes": (32, 32), "activation": "tanh"},
    )
    _, (lengths, returns) = jax.jit(ppo.train)(jax.random.key(0))
    return returns.mean(axis=1), lengths.mean(axis=1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=655_360)
    steps = parser.parse_args().steps
    for mean_return, mean_length in zip(*train(steps, steps // 5), strict=True):
        print(f"return {mean_return:+.2f}  length {mean_length:.0f}")
