"""A side view of the HalfCheetah."""

from __future__ import annotations

import math

import numpy as np

from halfcheetah_jax.dynamics import COMPILED

__all__ = ["render_frame"]

_WIDTH, _HEIGHT, _SCALE, _FLOOR = 480, 240, 130.0, 200  # pixels, pixels per metre
_SKY, _GROUND, _TILE = (198, 220, 236), (120, 140, 120), (100, 120, 100)
_COLOURS = ((204, 153, 102), (204, 153, 102), *[(153, 94, 51)] * 3, *[(179, 115, 66)] * 3)


def render_frame(qpos: np.ndarray) -> np.ndarray:
    """Picture `uint8[240, 480, 3]` of positions `[9]`; the view follows the torso's x.

    Raises:
        ValueError: a position is infinite or no number.
    """
    from PIL import Image, ImageDraw

    if not np.isfinite(qpos).all():
        raise ValueError(f"qpos is {qpos}; accepted are finite numbers")
    picture = Image.new("RGB", (_WIDTH, _HEIGHT), _SKY)
    draw = ImageDraw.Draw(picture)
    _draw_floor(draw, float(qpos[0]))
    width = round(2 * COMPILED["radius"] * _SCALE)
    for colour, ends in zip(_COLOURS, _capsules(np.asarray(qpos, np.float64)), strict=True):
        points = [(_WIDTH / 2 + _SCALE * x, _FLOOR - _SCALE * z) for x, z in ends]
        draw.line(points, fill=colour, width=width)
        for x, z in points:
            draw.ellipse([x - width / 2, z - width / 2, x + width / 2, z + width / 2], fill=colour)
    return np.asarray(picture)


def _draw_floor(draw: object, x: float) -> None:
    """The floor, with a tile every metre so that motion shows."""
    draw.rectangle([0, _FLOOR, _WIDTH, _HEIGHT], fill=_GROUND)  # type: ignore[attr-defined]
    half = _WIDTH / 2 / _SCALE
    for metre in range(math.floor(x - half), math.ceil(x + half)):
        if metre % 2:
            left = _WIDTH / 2 + _SCALE * (metre - x)
            draw.rectangle([left, _FLOOR, left + _SCALE, _HEIGHT], fill=_TILE)  # type: ignore[attr-defined]


def _capsules(qpos: np.ndarray) -> list[list[tuple[float, float]]]:
    """Both ends of every capsule, with x relative to the torso's origin and z above the floor."""
    places, angles = [(0.0, float(qpos[1]) + COMPILED["offset"][0][1])], [float(qpos[2])]
    for body in range(1, 7):
        parent = COMPILED["parent"][body]
        places.append(_moved(places[parent], angles[parent], COMPILED["offset"][body]))
        angles.append(angles[parent] + float(qpos[body + 2]))
    bodies = COMPILED["capsule_body"]
    return [
        [_moved(places[body], angles[body], end) for end in ends]
        for body, ends in zip(bodies, COMPILED["endpoints"], strict=True)
    ]


def _moved(origin: tuple[float, float], angle: float, point: list[float]) -> tuple[float, float]:
    sin, cos = math.sin(angle), math.cos(angle)
    return origin[0] + cos * point[0] + sin * point[1], origin[1] - sin * point[0] + cos * point[1]
