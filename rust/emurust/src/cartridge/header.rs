//! The cartridge header at 0x0100 to 0x014F.
//!
//! Source of all offsets and meanings: Pan Docs, "The Cartridge Header". Known limit: an MMM01
//! starts with its last 32 KiB in view, so that the header of its menu lies there; what is read
//! here is always the header in the first bank.

use super::error::HeaderError;
use super::kind::{CartridgeType, Ram};
use super::size::{self, RAM_BANK_BYTES, ROM_BANK_BYTES};
use super::title::{self, TitleForm};

/// The first byte after the header.
pub(super) const HEADER_END: usize = 0x150;

const LOGO: std::ops::Range<usize> = 0x104..0x134;
const TITLE: usize = 0x134;
const CGB_FLAG: usize = 0x143;
const NEW_LICENSEE: std::ops::Range<usize> = 0x144..0x146;
const SGB_FLAG: usize = 0x146;
const CARTRIDGE_TYPE: usize = 0x147;
const ROM_SIZE: usize = 0x148;
const RAM_SIZE: usize = 0x149;
const DESTINATION: usize = 0x14A;
const OLD_LICENSEE: usize = 0x14B;
const MASK_VERSION: usize = 0x14C;
const HEADER_CHECKSUM: usize = 0x14D;
const GLOBAL_CHECKSUM: std::ops::Range<usize> = 0x14E..HEADER_END;

/// The old licensee code that refers to the two characters at 0x0144.
const USES_NEW_LICENSEE: u8 = 0x33;

/// FNV-1a of the 48 logo bytes that the boot program compares; the picture itself is not kept here.
const LOGO_HASH: u64 = 0x0E13_F858_5A99_F41F;

/// What the byte at 0x0143 asks of the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CgbSupport {
    /// Bit 7 clear: a cartridge for the original console.
    None,
    /// Bit 7 set, bit 6 clear: colour functions where there are any.
    Optional,
    /// Bits 7 and 6 set: for colour consoles alone.
    Required,
}

/// Where the cartridge was to be sold, by the byte at 0x014A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    /// Code 0.
    Japan,
    /// Code 1.
    Overseas,
    /// Any other code; none is defined.
    Unknown(u8),
}

/// What a cartridge image says about itself.
///
/// A value exists only for an image that is consistent: known codes, RAM only where the type has
/// it, sizes within the mapper's reach, and exactly as many bytes as the header names. Checksums
/// and logo do not have to be right; the consoles care about two of them, emulators need none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CartridgeHeader {
    /// The title, without padding; bytes that are not printable ASCII are U+FFFD.
    pub title: String,
    /// How much of the title field is the title.
    pub title_form: TitleForm,
    /// The four characters at 0x013F, where the title leaves them room.
    pub manufacturer_code: Option<String>,
    /// The byte at 0x0143: a colour flag, or the last character of a 16-character title.
    pub cgb_flag: u8,
    /// The byte at 0x0146.
    pub sgb_flag: u8,
    /// Two characters: the new code where there is one, else the old code in hexadecimal.
    pub licensee_code: String,
    /// The byte at 0x014B.
    pub old_licensee_code: u8,
    /// The mapper and what else is on the board.
    pub kind: CartridgeType,
    /// Bytes of ROM; also the length of the image.
    pub rom_bytes: usize,
    /// Bytes of RAM, the chip's own included. An MBC2 keeps four bits in each.
    pub ram_bytes: usize,
    /// Where the cartridge was to be sold.
    pub destination: Destination,
    /// The version of the program, usually 0.
    pub mask_version: u8,
    /// The byte at 0x014D.
    pub header_checksum: u8,
    /// What that byte should be.
    pub computed_header_checksum: u8,
    /// The big-endian word at 0x014E.
    pub global_checksum: u16,
    /// What that word should be.
    pub computed_global_checksum: u16,
    /// The logo is the one that the boot program asks for.
    pub logo_valid: bool,
}

impl CartridgeHeader {
    /// Reads the header of a whole cartridge image.
    ///
    /// # Errors
    ///
    /// [`HeaderError`] if the image is too short for a header, names unknown hardware or sizes,
    /// contradicts itself, or is not as long as it says.
    pub fn parse(image: &[u8]) -> Result<Self, HeaderError> {
        let header: &[u8; HEADER_END] =
            image.first_chunk().ok_or(HeaderError::TooShort(image.len()))?;
        let code = header[CARTRIDGE_TYPE];
        let kind = CartridgeType::from_code(code).ok_or(HeaderError::UnknownCartridgeType(code))?;
        let rom_bytes = rom_bytes(header, kind)?;
        let ram_bytes = ram_bytes(header, kind, rom_bytes)?;
        if image.len() != rom_bytes {
            return Err(HeaderError::WrongLength { len: image.len(), rom_bytes });
        }
        let (title, title_form, manufacturer_code) = title(header);
        Ok(Self {
            title,
            title_form,
            manufacturer_code,
            cgb_flag: header[CGB_FLAG],
            sgb_flag: header[SGB_FLAG],
            licensee_code: licensee(header),
            old_licensee_code: header[OLD_LICENSEE],
            kind,
            rom_bytes,
            ram_bytes,
            destination: destination(header[DESTINATION]),
            mask_version: header[MASK_VERSION],
            header_checksum: header[HEADER_CHECKSUM],
            computed_header_checksum: header_checksum(header),
            global_checksum: u16::from_be_bytes([header[0x14E], header[0x14F]]),
            computed_global_checksum: global_checksum(image),
            logo_valid: fnv1a(&header[LOGO]) == LOGO_HASH,
        })
    }

    /// What the cartridge asks of a colour console.
    #[must_use]
    pub const fn cgb_support(&self) -> CgbSupport {
        match self.cgb_flag & 0xC0 {
            0x80 => CgbSupport::Optional,
            0xC0 => CgbSupport::Required,
            _ => CgbSupport::None,
        }
    }

    /// The Super Game Boy obeys the cartridge: it wants the flag 3 and the new licensee code.
    #[must_use]
    pub const fn supports_sgb(&self) -> bool {
        self.sgb_flag == 3 && self.old_licensee_code == USES_NEW_LICENSEE
    }

    /// There is RAM, of whatever kind.
    #[must_use]
    pub const fn has_ram(&self) -> bool {
        self.ram_bytes > 0
    }

    /// Banks of 16 KiB.
    #[must_use]
    pub const fn rom_banks(&self) -> usize {
        self.rom_bytes / ROM_BANK_BYTES
    }

    /// Banks of 8 KiB; memory smaller than a bank is one.
    #[must_use]
    pub const fn ram_banks(&self) -> usize {
        self.ram_bytes.div_ceil(RAM_BANK_BYTES)
    }

    /// The stored header checksum is right; the boot program stops if it is not.
    #[must_use]
    pub const fn header_checksum_valid(&self) -> bool {
        self.header_checksum == self.computed_header_checksum
    }

    /// The stored global checksum is right; no console checks it.
    #[must_use]
    pub const fn global_checksum_valid(&self) -> bool {
        self.global_checksum == self.computed_global_checksum
    }
}

fn rom_bytes(header: &[u8; HEADER_END], kind: CartridgeType) -> Result<usize, HeaderError> {
    let code = header[ROM_SIZE];
    let rom_bytes = size::rom_bytes(code).ok_or(HeaderError::UnknownRomSize(code))?;
    if rom_bytes > kind.mapper.max_rom_bytes() {
        return Err(HeaderError::RomBeyondMapper { kind, rom_bytes });
    }
    Ok(rom_bytes)
}

fn ram_bytes(
    header: &[u8; HEADER_END],
    kind: CartridgeType,
    rom_bytes: usize,
) -> Result<usize, HeaderError> {
    let code = header[RAM_SIZE];
    let ram_bytes = size::ram_bytes(code).ok_or(HeaderError::UnknownRamSize(code))?;
    match (kind.ram, ram_bytes) {
        (Ram::None, 0) => Ok(0),
        (Ram::BuiltIn(built_in), 0) => Ok(built_in),
        (Ram::None | Ram::BuiltIn(_), _) => Err(HeaderError::RamWithoutSupport { kind, ram_bytes }),
        (Ram::Sized, 0) => Err(HeaderError::RamSizeMissing(kind)),
        _ if ram_bytes > kind.mapper.max_ram_bytes(rom_bytes) => {
            Err(HeaderError::RamBeyondMapper { kind, rom_bytes, ram_bytes })
        }
        _ => Ok(ram_bytes),
    }
}

fn title(header: &[u8; HEADER_END]) -> (String, TitleForm, Option<String>) {
    let mut field = [0; 16];
    field.copy_from_slice(&header[TITLE..TITLE + 16]);
    let form = TitleForm::of(&field);
    let code = (form == TitleForm::Chars11).then(|| title::text(&field[11..15]));
    (title::text(&field[..form.chars()]), form, code)
}

fn licensee(header: &[u8; HEADER_END]) -> String {
    match header[OLD_LICENSEE] {
        USES_NEW_LICENSEE => title::text(&header[NEW_LICENSEE]),
        old => format!("{old:02X}"),
    }
}

fn destination(code: u8) -> Destination {
    match code {
        0 => Destination::Japan,
        1 => Destination::Overseas,
        other => Destination::Unknown(other),
    }
}

/// The sum that the boot program makes of the bytes from the title to the version.
fn header_checksum(header: &[u8; HEADER_END]) -> u8 {
    header[TITLE..HEADER_CHECKSUM]
        .iter()
        .fold(0, |sum: u8, &byte| sum.wrapping_sub(byte).wrapping_sub(1))
}

/// The sum of all bytes of the ROM except the two that hold the sum.
fn global_checksum(image: &[u8]) -> u16 {
    let sum = |bytes: &[u8]| bytes.iter().fold(0u16, |sum, &byte| sum.wrapping_add(byte.into()));
    sum(image).wrapping_sub(sum(&image[GLOBAL_CHECKSUM]))
}

/// 64-bit FNV-1a.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[cfg(test)]
mod tests {
    use super::fnv1a;

    #[test]
    fn fnv1a_gives_its_published_test_values() {
        assert_eq!(fnv1a(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_F739_67E8);
    }
}
