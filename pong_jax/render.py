"""A picture of the court, laid out as the real game's window."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["render_frame"]

_BACKGROUND, _LEFT, _RIGHT = (6, 24, 24), (255, 0, 0), (0, 255, 255)
_BALL, _SCORE = (255, 255, 255), (0, 187, 187)


def render_frame(state: Any, params: Any) -> np.ndarray:
    """`uint8[height, width + 6 paddle widths, 3]`: paddles, ball and scores of one state.

    Sizes and colours are those of `pong.h` render; the ball is a disc and the digits are Pillow's.
    """
    from PIL import Image, ImageDraw

    width, height = round(params.width), round(params.height)
    pad, thick = round(3 * params.paddle_width), round(params.paddle_width)
    image = Image.new("RGB", (width + 2 * pad, height), _BACKGROUND)
    draw = ImageDraw.Draw(image)

    def box(x: float, y: float, w: float, h: float) -> tuple[float, float, float, float]:
        top = height - float(y) - h
        return x, top, x + w - 1, top + h - 1

    tall = params.paddle_height
    draw.rectangle(box(pad - thick, state.paddle_yl, thick, tall), fill=_LEFT)
    draw.rectangle(box(width + pad, state.paddle_yr, thick, tall), fill=_RIGHT)
    ball_x = pad + float(state.ball_x)
    draw.ellipse(box(ball_x, state.ball_y, params.ball_width, params.ball_height), fill=_BALL)
    for score, offset in ((state.score_l, -50), (state.score_r, 50)):
        centre = (width / 2 + pad + offset, 10)
        draw.text(centre, str(int(score)), fill=_SCORE, anchor="ma", font_size=30)
    return np.asarray(image, np.uint8)
