"""Reads the planar constants of Gymnasium's HalfCheetah out of the model that MuJoCo compiles.

    python halfcheetah_jax/data/generate.py

Needs the packages `mujoco` and `gymnasium`; writes `half_cheetah.json` and `MANIFEST.json` beside
this file. Angles turn about +y; places are (x, z) in the frame of their body.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np

_HERE = Path(__file__).parent
_XML = "envs/mujoco/assets/half_cheetah.xml"


def model_file() -> Path:
    """Gymnasium's model file."""
    import gymnasium

    return Path(gymnasium.__file__).parent / _XML


def constants(model: Any) -> dict[str, Any]:
    """The constants of a compiled model.

    Raises:
        ValueError: the model is not planar, or is made up otherwise than the HalfCheetah.
    """
    import mujoco

    _check(model)

    def names(kind: Any, count: int, first: int = 0) -> list[str]:
        return [mujoco.mj_id2name(model, kind, i) for i in range(first, count)]

    capsules = range(1, model.ngeom)
    return {
        "bodies": names(mujoco.mjtObj.mjOBJ_BODY, model.nbody, 1),
        "joints": names(mujoco.mjtObj.mjOBJ_JOINT, model.njnt),
        "parent": (model.body_parentid[1:] - 1).tolist(),
        "offset": model.body_pos[1:, [0, 2]].tolist(),
        "mass": model.body_mass[1:].tolist(),
        "centre": model.body_ipos[1:, [0, 2]].tolist(),
        "inertia": [_about_y(model, body) for body in range(1, model.nbody)],
        "stiffness": model.jnt_stiffness[3:].tolist(),
        "damping": model.dof_damping[3:].tolist(),
        "armature": model.dof_armature[3:].tolist(),
        "range": model.jnt_range[3:].tolist(),
        "gear": model.actuator_gear[:, 0].tolist(),
        "endpoints": [_endpoints(model, geom) for geom in capsules],
        "capsules": names(mujoco.mjtObj.mjOBJ_GEOM, model.ngeom, 1),
        "capsule_body": (model.geom_bodyid[1:] - 1).tolist(),
        "radius": float(model.geom_size[1, 0]),
        "friction": float(model.geom_friction[1, 0]),
        "solref": model.geom_solref[1].tolist(),
        "solimp_contact": model.geom_solimp[1].tolist(),
        "solimp_limit": model.jnt_solimp[3].tolist(),
        "gravity": float(-model.opt.gravity[2]),
        "timestep": float(model.opt.timestep),
        "dof_invweight0": model.dof_invweight0.tolist(),
        "body_invweight0": model.body_invweight0[1:, 0].tolist(),
    }


def _about_y(model: Any, body: int) -> float:
    """Moment of inertia about the y axis through the centre of mass."""
    import mujoco

    flat = np.zeros(9)
    mujoco.mju_quat2Mat(flat, model.body_iquat[body])
    axes = flat.reshape(3, 3)
    return float((axes * model.body_inertia[body] @ axes.T)[1, 1])


def _endpoints(model: Any, geom: int) -> list[list[float]]:
    """Centres of the two half-spheres that close a capsule."""
    import mujoco

    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, model.geom_quat[geom])
    axis = axes.reshape(3, 3)[:, 2] * model.geom_size[geom, 1]
    centre = model.geom_pos[geom]
    return [(centre + sign * axis)[[0, 2]].tolist() for sign in (1.0, -1.0)]


def _check(model: Any) -> None:
    limbs = slice(3, None)
    same = {
        "nine degrees of freedom": model.nv == 9 and model.nbody == 8 and model.ngeom == 9,
        "hinges about y at their body's origin": (
            np.array_equal(model.jnt_axis[2:], np.tile([0.0, 1.0, 0.0], (7, 1)))
            and not model.jnt_pos.any()
            and np.array_equal(model.body_quat, np.tile([1.0, 0, 0, 0], (8, 1)))
        ),
        "centres in the plane": not model.body_ipos[:, 1].any() and not model.geom_pos[:, 1].any(),
        "rest at 0": not model.qpos0.any() and not model.qpos_spring.any(),
        "one friction": np.unique(model.geom_friction[:, 0]).size == 1,
        "one radius": np.unique(model.geom_size[1:, 0]).size == 1,
        "one solref": np.unique([*model.geom_solref, *model.jnt_solref], axis=0).shape[0] == 1,
        "one solimp of contacts": np.unique(model.geom_solimp, axis=0).shape[0] == 1,
        "one solimp of limits": np.unique(model.jnt_solimp[limbs], axis=0).shape[0] == 1,
        "no margins": not model.geom_margin.any() and not model.jnt_margin.any(),
        "free root": not (model.jnt_stiffness[:3].any() or model.dof_damping[:3].any()),
        "only the floor is touched": (
            model.geom_conaffinity[0] == 1 and not model.geom_conaffinity[1:].any()
        ),
        "controls within 1": np.array_equal(model.actuator_ctrlrange, np.tile([-1.0, 1.0], (6, 1))),
    }
    if wrong := [name for name, holds in same.items() if not holds]:
        raise ValueError(f"not the HalfCheetah that the dynamics are written for: {wrong}")


def main() -> None:
    """Write the data and its manifest."""
    import mujoco

    source = model_file()
    data = constants(mujoco.MjModel.from_xml_path(str(source)))
    text = json.dumps(data, indent=1) + "\n"
    (_HERE / "half_cheetah.json").write_text(text)
    path = _HERE / "MANIFEST.json"
    # `collect.py` has its lines in the manifest, too.
    manifest = json.loads(path.read_text()) if path.exists() else {"sha256": {}}
    manifest["source"] = f"gymnasium/{_XML}, compiled by MuJoCo"
    packages = ("gymnasium", "mujoco")
    manifest["version"] = {name: importlib.metadata.version(name) for name in packages}
    manifest["sha256"] |= {
        "half_cheetah.json": hashlib.sha256(text.encode()).hexdigest(),
        source.name: hashlib.sha256(source.read_bytes()).hexdigest(),
    }
    manifest["command"] = "python halfcheetah_jax/data/generate.py"
    path.write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    main()
