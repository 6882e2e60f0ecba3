"""One round: I attack, charge or rest; then the foe strikes, and its best strike burns me."""

import jax
import jax.numpy as jnp

FULL = 20
ATTACK, CHARGE, REST = 0, 1, 2


def play(hp, boost, burned, action, roll):
    """hp: int16[2] (me, foe), boost: int16, burned: bool, action: int32, roll: uint32 0 to 3."""
    luck = roll.astype(jnp.int16)
    attack, charge, rest = (action == kind for kind in (ATTACK, CHARGE, REST))
    damage = 4 + 2 * boost + luck
    damage = jnp.where(burned, damage // 2, damage)
    foe = hp[1] - jnp.where(attack, damage, jnp.zeros_like(damage))
    boost = jnp.where(charge, jnp.minimum(boost + 1, 3), boost)
    me = jnp.where(rest, jnp.minimum(hp[0] + 3, FULL), hp[0])
    burned = burned & ~rest
    alive = foe > 0
    me = jnp.where(alive, me - 2 - luck // 2, me)
    burned = burned | (alive & (roll == 3))
    won, lost = foe <= 0, me <= 0
    reward = won.astype(jnp.float32) - lost.astype(jnp.float32)
    return jnp.stack([me, foe]), boost, burned, reward, won | lost


def restart(over, hp, boost, burned):
    """A new duel where one is over."""
    fresh = (jnp.full((2,), FULL, jnp.int16), jnp.zeros((), jnp.int16), jnp.zeros((), jnp.bool_))
    return jax.tree.map(lambda new, old: jnp.where(over, new, old), fresh, (hp, boost, burned))
