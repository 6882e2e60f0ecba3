"""Which outside references there are: packages with their versions and hashes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

__all__ = ["REFERENCES", "Reference", "Wheel"]


@dataclasses.dataclass(frozen=True)
class Wheel:
    """A package installed without its dependencies.

    Attributes:
        package: distribution name.
        version: pinned version.
        wheels: sha256 of its wheels, one per Python and platform that has any.
    """

    package: str
    version: str
    wheels: tuple[str, ...]

    @property
    def requirement(self) -> str:
        """Its line in a requirements file."""
        hashes = [f"--hash=sha256:{digest}" for digest in self.wheels]
        return " ".join([f"{self.package}=={self.version}", *hashes])


@dataclasses.dataclass(frozen=True)
class Reference:
    """What is installed under one name, in a folder of its own.

    Attributes:
        wheel: the package itself.
        files: sha256 by path, of files that must still be there as they were.
        companions: what it imports besides and the environment need not have.
        needs: other references that it imports.
        extends: packages of the environment that it adds modules to.
        environment: distributions that must be in the environment, and what installs each.
        purpose: "verification" or "benchmarks"; the latter are installed only when named.
    """

    wheel: Wheel
    files: Mapping[str, str]
    companions: tuple[Wheel, ...] = ()
    needs: tuple[str, ...] = ()
    extends: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    purpose: str = "verification"


REFERENCES: dict[str, Reference] = {
    "brax": Reference(
        Wheel(
            "brax",
            "0.14.2",
            ("d33b7b222ba5d85fd0fc4d4c59aa46feb978684107ad3f79de6bfef97ab06693",),
        ),
        {
            "brax/envs/half_cheetah.py": (
                "fe0dcd8804d7854418aeaad6f64edbe66375334a8a52ed9ddba64890124c7426"
            ),
            "brax/generalized/pipeline.py": (
                "9fbd6974735e94d8590c97314fc20d35cc8688ff35c855723c3b8c0a7d2389dd"
            ),
            "jaxopt/__init__.py": (
                "ba65d9b1cbffdf020372b8752718658725c23a272682c8139fb40875c389fff1"
            ),
        },
        companions=(
            Wheel(
                "jaxopt",
                "0.8.5",
                ("ff221d1a86908ec759eb1e219ee1d12bf208a70707e961bf7401076fe7cf4d5e",),
            ),
        ),
        needs=("mjx",),
        purpose="benchmarks",
    ),
    "mjx": Reference(
        Wheel(
            "mujoco-mjx",
            "3.17.0",
            ("96e4e009dfac1da2c35494a61ccbdeccecef39c6c8fec62a259c18a0b35ddd02",),
        ),
        {
            "mujoco/mjx/_src/forward.py": (
                "a845042206ea42a87d3ecaaf3bee5842cc496fb86a4d798177632a3f5a9efee6"
            ),
            "mujoco/mjx/_src/solver.py": (
                "5342e12f69ff628aae9ba2460ff1bc355218313daed087c2dd608befaf1cebaf"
            ),
            "trimesh/base.py": ("0090309bfd53eba33136076799c86525506b1d1aeff706d7a06af2f020469854"),
        },
        companions=(
            Wheel(
                "trimesh",
                "5.2.0",
                ("04db2c7ec62afdd7763fb04c82bb5f257ddd984993a19ee83697f475fc58fd29",),
            ),
        ),
        extends=("mujoco",),
        environment={"mujoco": "pip install mujoco==4.0.0"},
        purpose="benchmarks",
    ),
    "pufferlib": Reference(
        Wheel(
            "pufferlib",
            "2.0.2",
            (
                "18c5e74f9a7790aad4bffe223f4de79d363cb6a8b7e3e9988d5bf6a525e0e3a5",
                "6203dcecef7aedd8848370e703827d0ac7a1b33c874500e5c9844409cd4f792c",
                "3139720851f413d0a518da869bf39b7e782a790f0f16120bb3c64e3979b270ea",
            ),
        ),
        {
            "pufferlib/ocean/pong/pong.h": (
                "ec51ede734f9e2f29abeec228d1a53452dbc5730fcfbc3cd0b6a3eb9141ac8c3"
            )
        },
    ),
}
