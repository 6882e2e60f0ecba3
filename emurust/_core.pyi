"""Types of the compiled module. Memory sizes are in bytes, flags and checksums are raw numbers."""

import os
from typing import Literal, final

from typing_extensions import Buffer

__all__ = ["CartridgeError", "CartridgeHeader"]

class CartridgeError(ValueError):
    """A cartridge image that cannot be what its header says."""

@final
class CartridgeHeader:
    """What a Game Boy cartridge image says about itself.

    An instance exists only for a consistent image: known codes, RAM only where the cartridge type
    has it, sizes that the mapper can address, and exactly as many bytes as the header names.
    """

    @classmethod
    def from_bytes(cls, data: Buffer) -> CartridgeHeader:
        """Reads the header of a whole image.

        Raises:
            CartridgeError: if the image is too short, truncated, too long or inconsistent.
            TypeError: if `data` is not a buffer of unsigned bytes.
        """

    @classmethod
    def from_path(cls, path: str | os.PathLike[str]) -> CartridgeHeader:
        """Reads the header of the image in a file.

        Raises:
            CartridgeError: as `from_bytes`; the message starts with the path.
            OSError: if the file cannot be read.
        """

    @property
    def title(self) -> str:
        """Title without padding; what is not printable ASCII is U+FFFD."""
    @property
    def title_length(self) -> Literal[11, 15, 16]:
        """Bytes of the title field that hold the title: 16, 15 with a colour flag, 11 with a
        manufacturer code too."""
    @property
    def manufacturer_code(self) -> str | None:
        """The four characters at 0x013F where the title is of the 11-character form."""
    @property
    def cgb_flag(self) -> int:
        """The byte at 0x0143."""
    @property
    def cgb_support(self) -> Literal["none", "optional", "required"]:
        """What the cartridge asks of a colour console."""
    @property
    def sgb_flag(self) -> int:
        """The byte at 0x0146."""
    @property
    def supports_sgb(self) -> bool:
        """Flag 3 together with the new form of the licensee code."""
    @property
    def licensee_code(self) -> str:
        """The two characters of the new code, or the old code in hexadecimal."""
    @property
    def old_licensee_code(self) -> int:
        """The byte at 0x014B; 0x33 refers to the new code."""
    @property
    def cartridge_type(self) -> int:
        """The byte at 0x0147."""
    @property
    def mapper(self) -> str:
        """Name of the mapper, as "MBC1", or "ROM only"."""
    @property
    def has_ram(self) -> bool:
        """There is RAM on the board or in the mapper."""
    @property
    def has_battery(self) -> bool:
        """RAM or clock survive while the console is off."""
    @property
    def has_timer(self) -> bool:
        """There is a real-time clock."""
    @property
    def has_rumble(self) -> bool:
        """There is a rumble motor."""
    @property
    def rom_bytes(self) -> int:
        """Bytes of ROM, the length of the image."""
    @property
    def rom_banks(self) -> int:
        """Banks of 16 KiB."""
    @property
    def ram_bytes(self) -> int:
        """Bytes of RAM; an MBC2 keeps four bits in each."""
    @property
    def ram_banks(self) -> int:
        """Banks of 8 KiB; memory smaller than a bank is one."""
    @property
    def destination(self) -> Literal["japan", "overseas", "unknown"]:
        """Where the cartridge was to be sold."""
    @property
    def mask_version(self) -> int:
        """Version of the program, usually 0."""
    @property
    def header_checksum(self) -> int:
        """The byte at 0x014D."""
    @property
    def computed_header_checksum(self) -> int:
        """What that byte should be."""
    @property
    def header_checksum_valid(self) -> bool:
        """Stored and computed are equal; consoles refuse to start otherwise."""
    @property
    def global_checksum(self) -> int:
        """The big-endian word at 0x014E."""
    @property
    def computed_global_checksum(self) -> int:
        """What that word should be."""
    @property
    def global_checksum_valid(self) -> bool:
        """Stored and computed are equal; no console checks it."""
    @property
    def logo_valid(self) -> bool:
        """The logo is the one that consoles ask for before they start a cartridge."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
