import array
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.rust


def test_a_full_header_is_read(emurust, make_image):
    image = make_image(
        0x1E,
        rom_code=2,
        ram_code=3,
        at_134=b"MONSTERS\0\0\0AXYE\x80",
        at_144=b"01",
        at_146=b"\x03",
        at_14A=b"\x01\x33\x07",
    )
    header = emurust.CartridgeHeader.from_bytes(image)
    expected = {
        "title": "MONSTERS",
        "title_length": 11,
        "manufacturer_code": "AXYE",
        "cgb_flag": 0x80,
        "cgb_support": "optional",
        "sgb_flag": 3,
        "supports_sgb": True,
        "licensee_code": "01",
        "old_licensee_code": 0x33,
        "cartridge_type": 0x1E,
        "mapper": "MBC5",
        "has_ram": True,
        "has_battery": True,
        "has_timer": False,
        "has_rumble": True,
        "rom_bytes": 128 * 1024,
        "rom_banks": 8,
        "ram_bytes": 32 * 1024,
        "ram_banks": 4,
        "destination": "overseas",
        "mask_version": 7,
        "logo_valid": False,
    }
    assert {name: getattr(header, name) for name in expected} == expected


def test_checksums_agree_with_their_definition(emurust, make_image):
    image = make_image(1, rom_code=1)
    image[0x150:] = np.random.default_rng(7).bytes(len(image) - 0x150)
    image[0x14D] = -sum(byte + 1 for byte in image[0x134:0x14D]) % 256
    total = sum(image) % 65536
    image[0x14E:0x150] = total.to_bytes(2, "big")
    header = emurust.CartridgeHeader.from_bytes(image)
    assert header.header_checksum == header.computed_header_checksum == image[0x14D]
    assert header.global_checksum == header.computed_global_checksum == total
    assert header.header_checksum_valid
    assert header.global_checksum_valid
    image[0x14D] ^= 1
    broken = emurust.CartridgeHeader.from_bytes(image)
    assert not broken.header_checksum_valid
    assert not broken.global_checksum_valid
    assert broken.computed_header_checksum == header.header_checksum


@given(data=st.binary(max_size=0x400))
def test_any_bytes_give_a_header_or_a_cartridge_error(emurust, data):
    with pytest.raises(emurust.CartridgeError):
        emurust.CartridgeHeader.from_bytes(data)


@given(header=st.binary(min_size=0x50, max_size=0x50))
def test_any_header_on_a_small_image_is_read_or_refused(emurust, make_image, header):
    image = make_image(at_100=header)
    try:
        found = emurust.CartridgeHeader.from_bytes(image)
    except emurust.CartridgeError:
        return
    assert (found.rom_bytes, found.cartridge_type) == (len(image), image[0x147])


@pytest.mark.parametrize(
    ("changes", "length", "parts"),
    [
        ({}, 0, ["0 bytes", "ends at byte 336", "whole ROM file"]),
        ({"cartridge_type": 4}, None, ["0x04 at 0x0147", "accepted are 0x00", "unpacked"]),
        ({"at_148": b"\x52"}, None, ["0x52 at 0x0148", "0x08 (8 MiB)", "correct that byte"]),
        ({"ram_code": 1}, None, ["0x01 at 0x0149", "0x04 (128 KiB)", "correct that byte"]),
        ({"ram_code": 2}, None, ["8 KiB of RAM", "(ROM only) takes no RAM", "set 0x0149"]),
        ({"cartridge_type": 3}, None, ["(MBC1) has RAM", "set 0x0149 to 0x02"]),
        ({"rom_code": 1}, None, ["64 KiB of ROM", "at most 32 KiB", "correct the type"]),
        ({"cartridge_type": 1, "rom_code": 1}, 40_000, ["truncated", "40000 bytes", "65536"]),
        ({}, 0x8001, ["does not end with a bank", "32769 bytes", "remove"]),
        ({}, 0xC000, ["too long", "49152 bytes", "cut the file"]),
    ],
)
def test_refusals_say_what_was_given_what_is_accepted_and_what_to_do(
    emurust, make_image, changes, length, parts
):
    image = make_image(**changes)
    length = len(image) if length is None else length
    with pytest.raises(emurust.CartridgeError) as caught:
        emurust.CartridgeHeader.from_bytes(image[:length].ljust(length, b"\0"))
    assert isinstance(caught.value, ValueError)
    for part in parts:
        assert part in str(caught.value)


def test_every_buffer_of_bytes_is_accepted_and_nothing_else(emurust, make_image):
    image = make_image()
    same = emurust.CartridgeHeader.from_bytes(bytes(image))
    for buffer in (
        image,
        memoryview(image),
        np.frombuffer(image, np.uint8),
        array.array("B", image),
    ):
        assert emurust.CartridgeHeader.from_bytes(buffer) == same
    for other in ("a.gb", Path("a.gb"), None, list(image[:4]), np.zeros(4, np.float32)):
        with pytest.raises(TypeError, match=rf"got {type(other).__name__}.*from_path"):
            emurust.CartridgeHeader.from_bytes(other)


def test_a_file_is_read_and_named_in_errors(emurust, make_image, tmp_path):
    path = tmp_path / "game.gb"
    path.write_bytes(make_image())
    by_text = emurust.CartridgeHeader.from_path(str(path))
    assert by_text == emurust.CartridgeHeader.from_path(path)
    path.write_bytes(b"short")
    with pytest.raises(emurust.CartridgeError, match=r"game\.gb: the image has 5 bytes"):
        emurust.CartridgeHeader.from_path(path)
    with pytest.raises(FileNotFoundError, match=r"absent\.gb.*give the path"):
        emurust.CartridgeHeader.from_path(tmp_path / "absent.gb")
    with pytest.raises(IsADirectoryError):
        emurust.CartridgeHeader.from_path(tmp_path)


def test_no_more_of_a_mistaken_file_is_read_than_a_cartridge_can_have(
    emurust, make_image, tmp_path
):
    path = tmp_path / "huge.gb"
    with path.open("wb") as file:
        file.write(make_image())
        file.truncate(1 << 40)
    with pytest.raises(emurust.CartridgeError, match="8388609 bytes"):
        emurust.CartridgeHeader.from_path(path)


def test_headers_are_values(emurust, make_image):
    first = emurust.CartridgeHeader.from_bytes(make_image(at_134=b"ONE"))
    again = emurust.CartridgeHeader.from_bytes(make_image(at_134=b"ONE"))
    other = emurust.CartridgeHeader.from_bytes(make_image(at_134=b"TWO"))
    assert first == again
    assert hash(first) == hash(again)
    assert first != other
    assert first != "ONE"
    text = 'CartridgeHeader(title="ONE", mapper="ROM only", rom_bytes=32768, ram_bytes=0)'
    assert repr(first) == text
    with pytest.raises(AttributeError):
        first.title = "TWO"


def test_free_roms_have_valid_headers(emurust):
    paths = sorted(_free_roms())
    headers = {path: emurust.CartridgeHeader.from_path(path) for path in paths}
    assert {header.mapper for header in headers.values()} >= {"ROM only", "MBC1", "MBC2", "MBC5"}
    for path, header in headers.items():
        assert header.header_checksum_valid, path
        assert header.rom_bytes == path.stat().st_size, path
        assert header.logo_valid, path


def test_a_logo_with_one_wrong_bit_is_not_valid(emurust):
    image = bytearray(next(_free_roms()).read_bytes())
    assert emurust.CartridgeHeader.from_bytes(image).logo_valid
    for bit in range(8 * 48):
        changed = bytearray(image)
        changed[0x104 + bit // 8] ^= 1 << bit % 8
        assert not emurust.CartridgeHeader.from_bytes(changed).logo_valid


def _free_roms() -> Iterator[Path]:
    folder = os.environ.get("TWINENV_ROMS")
    if not folder:
        pytest.skip("TWINENV_ROMS isn't set: it names a folder of free Game Boy ROMs (*.gb)")
    found = list(Path(folder).rglob("*.gb"))
    if not found:
        pytest.fail(f"TWINENV_ROMS is {folder}, but no *.gb file was found below it")
    return iter(found)
