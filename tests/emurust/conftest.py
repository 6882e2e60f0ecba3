"""The extension under test, and images made for it."""

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def emurust() -> ModuleType:
    """The package with its extension loaded; a checkout without it skips what needs it."""
    try:
        importlib.import_module("emurust._core")
    except ImportError as error:
        pytest.skip(f"emurust._core isn't built here ({error}); run `pip install .`")
    return importlib.import_module("emurust")


@pytest.fixture(scope="session")
def make_image() -> Callable[..., bytearray]:
    """Makes an image of the size that `rom_code` names, with bytes set by address."""

    def make(
        cartridge_type: int = 0, rom_code: int = 0, ram_code: int = 0, **fields: bytes
    ) -> bytearray:
        image = bytearray(0x8000 << rom_code)
        image[0x147:0x14A] = bytes([cartridge_type, rom_code, ram_code])
        for address, content in fields.items():
            start = int(address.removeprefix("at_"), 16)
            image[start : start + len(content)] = content
        return image

    return make
