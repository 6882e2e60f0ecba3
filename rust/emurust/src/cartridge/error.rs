//! Why an image is refused. Every message says what was given, what is accepted and what to do.

use std::error::Error;
use std::fmt;

use super::header::HEADER_END;
use super::kind::CartridgeType;
use super::size::ROM_BANK_BYTES;

/// A cartridge image that cannot be what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// The image has only this many bytes and ends before its header does.
    TooShort(usize),
    /// This byte at 0x0147 names no known hardware.
    UnknownCartridgeType(u8),
    /// This byte at 0x0148 is no ROM size.
    UnknownRomSize(u8),
    /// This byte at 0x0149 is no RAM size.
    UnknownRamSize(u8),
    /// A RAM size is given although the type takes none from the header.
    RamWithoutSupport {
        /// The type found.
        kind: CartridgeType,
        /// RAM bytes that the header names.
        ram_bytes: usize,
    },
    /// This type has RAM, but the size code says none.
    RamSizeMissing(CartridgeType),
    /// The mapper cannot address that much ROM.
    RomBeyondMapper {
        /// The type found.
        kind: CartridgeType,
        /// ROM bytes that the header names.
        rom_bytes: usize,
    },
    /// The mapper cannot address that much RAM beside that much ROM.
    RamBeyondMapper {
        /// The type found.
        kind: CartridgeType,
        /// ROM bytes that the header names.
        rom_bytes: usize,
        /// RAM bytes that the header names.
        ram_bytes: usize,
    },
    /// The image has not the size that the header names.
    WrongLength {
        /// Bytes in the image.
        len: usize,
        /// ROM bytes that the header names.
        rom_bytes: usize,
    },
}

impl Error for HeaderError {}

impl fmt::Display for HeaderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::TooShort(len) => write!(
                out,
                "the image has {len} bytes, but a cartridge header alone ends at byte \
                 {HEADER_END}; pass the whole ROM file, unpacked"
            ),
            Self::UnknownCartridgeType(code) => write!(
                out,
                "cartridge type {code:#04X} at 0x0147 names no known hardware; accepted are {}; \
                 check that the file is an unpacked Game Boy ROM, or correct that byte",
                known_types()
            ),
            Self::UnknownRomSize(code) => write!(
                out,
                "ROM size code {code:#04X} at 0x0148 is unknown; accepted are 0x00 (32 KiB) to \
                 0x08 (8 MiB), each twice the one before; correct that byte to the file's size"
            ),
            Self::UnknownRamSize(code) => write!(
                out,
                "RAM size code {code:#04X} at 0x0149 is unknown; accepted are 0x00 (none), 0x02 \
                 (8 KiB), 0x03 (32 KiB), 0x05 (64 KiB) and 0x04 (128 KiB); correct that byte"
            ),
            Self::RamWithoutSupport { kind, ram_bytes } => write!(
                out,
                "the header names {} of RAM, but cartridge type {} takes no RAM size; set 0x0149 \
                 to 0x00, or 0x0147 to a type with RAM",
                Size(ram_bytes),
                Named(kind)
            ),
            Self::RamSizeMissing(kind) => write!(
                out,
                "cartridge type {} has RAM, but the RAM size at 0x0149 is 0x00 (none); set 0x0149 \
                 to 0x02, 0x03, 0x04 or 0x05, or 0x0147 to a type without RAM",
                Named(kind)
            ),
            Self::RomBeyondMapper { kind, rom_bytes } => write!(
                out,
                "the header names {} of ROM, but cartridge type {} addresses at most {}; correct \
                 the type at 0x0147 or the ROM size at 0x0148",
                Size(rom_bytes),
                Named(kind),
                Size(kind.mapper.max_rom_bytes())
            ),
            Self::RamBeyondMapper { kind, rom_bytes, ram_bytes } => write!(
                out,
                "the header names {} of RAM, but cartridge type {} with {} of ROM addresses at \
                 most {}; correct the type at 0x0147 or the RAM size at 0x0149",
                Size(ram_bytes),
                Named(kind),
                Size(rom_bytes),
                Size(kind.mapper.max_ram_bytes(rom_bytes))
            ),
            Self::WrongLength { len, rom_bytes } => write_length(out, len, rom_bytes),
        }
    }
}

fn write_length(out: &mut fmt::Formatter<'_>, len: usize, rom_bytes: usize) -> fmt::Result {
    let (what, remedy) = if len < rom_bytes {
        ("is truncated", "get a complete copy of the file, or correct the ROM size at 0x0148")
    } else if len % ROM_BANK_BYTES != 0 {
        ("does not end with a bank", "remove what was put before or after the ROM")
    } else {
        ("is too long", "cut the file to that size, or correct the ROM size at 0x0148")
    };
    write!(
        out,
        "the image {what}: it has {len} bytes, but the header names {rom_bytes} ({}, {} banks of \
         {ROM_BANK_BYTES}); {remedy}",
        Size(rom_bytes),
        rom_bytes / ROM_BANK_BYTES
    )
}

fn known_types() -> String {
    let codes: Vec<String> =
        CartridgeType::all().map(|kind| format!("{:#04X}", kind.code)).collect();
    codes.join(", ")
}

/// A number of bytes, shown in the largest unit that divides it.
struct Size(usize);

impl fmt::Display for Size {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MIB: usize = 1024 * 1024;
        match self.0 {
            bytes if bytes % MIB == 0 => write!(out, "{} MiB", bytes / MIB),
            bytes => write!(out, "{} KiB", bytes / 1024),
        }
    }
}

/// A cartridge type, shown as `0x13 (MBC3)`.
struct Named(CartridgeType);

impl fmt::Display for Named {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#04X} ({})", self.0.code, self.0.mapper.name())
    }
}
