//! The cartridge type at 0x0147: the mapper and what else is on the board.

use super::size::{MAX_RAM_BYTES, MAX_ROM_BYTES};

/// The chip that maps banks of ROM and RAM into the address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mapper {
    /// No mapper: 32 KiB of ROM, wired directly.
    RomOnly,
    /// The first mapper, up to 2 MiB.
    Mbc1,
    /// Up to 256 KiB, with 512 half-bytes of RAM on the chip.
    Mbc2,
    /// Multi-game mapper that emulates an MBC1 for each game.
    Mmm01,
    /// With an optional real-time clock; the 4 MiB variant is known as MBC30.
    Mbc3,
    /// Up to 8 MiB, the mapper of most colour cartridges.
    Mbc5,
    /// Two half-size windows for ROM and RAM, and flash memory.
    Mbc6,
    /// With an accelerometer and a serial EEPROM instead of RAM.
    Mbc7,
    /// The camera's own mapper.
    PocketCamera,
    /// Bandai's mapper with a clock.
    Tama5,
    /// Hudson's mapper with a clock, a speaker and an infrared port.
    HuC3,
    /// Hudson's mapper with an infrared port.
    HuC1,
}

impl Mapper {
    /// The usual name of the chip.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::RomOnly => "ROM only",
            Self::Mbc1 => "MBC1",
            Self::Mbc2 => "MBC2",
            Self::Mmm01 => "MMM01",
            Self::Mbc3 => "MBC3",
            Self::Mbc5 => "MBC5",
            Self::Mbc6 => "MBC6",
            Self::Mbc7 => "MBC7",
            Self::PocketCamera => "Pocket Camera",
            Self::Tama5 => "TAMA5",
            Self::HuC3 => "HuC3",
            Self::HuC1 => "HuC1",
        }
    }

    /// The most ROM the chip can address; the header's own limit where nothing lower is documented.
    #[must_use]
    pub const fn max_rom_bytes(self) -> usize {
        match self {
            Self::RomOnly => 32 * 1024,
            Self::Mbc2 => 256 * 1024,
            Self::Mbc6 => 1024 * 1024,
            Self::Mbc1 | Self::Mbc7 | Self::HuC3 => 2 * 1024 * 1024,
            Self::Mbc3 => 4 * 1024 * 1024,
            _ => MAX_ROM_BYTES,
        }
    }

    /// The most RAM the chip can address beside `rom_bytes` of ROM.
    ///
    /// An MBC1 has one register for the upper ROM banks or the RAM banks, never for both.
    #[must_use]
    pub const fn max_ram_bytes(self, rom_bytes: usize) -> usize {
        match self {
            Self::RomOnly => 8 * 1024,
            Self::Mbc1 if rom_bytes > 512 * 1024 => 8 * 1024,
            Self::Mbc1 | Self::Mbc6 => 32 * 1024,
            Self::Mbc3 => 64 * 1024,
            _ => MAX_RAM_BYTES,
        }
    }
}

/// Where the size of a cartridge's RAM comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ram {
    /// There is none; the size code must be 0.
    None,
    /// The size code names it and must not be 0.
    Sized,
    /// The size code names it or is 0 for none.
    Optional,
    /// It is part of another chip, in bytes; the size code must be 0.
    BuiltIn(usize),
}

/// One row of the table of cartridge types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CartridgeType {
    /// The byte at 0x0147.
    pub code: u8,
    /// The chip that maps the banks.
    pub mapper: Mapper,
    pub(super) ram: Ram,
    /// The RAM, or the clock, keeps its content while the console is off.
    pub has_battery: bool,
    /// There is a real-time clock.
    pub has_timer: bool,
    /// There is a rumble motor.
    pub has_rumble: bool,
}

const BATTERY: u8 = 1;
const TIMER: u8 = 2;
const RUMBLE: u8 = 4;

impl CartridgeType {
    /// The type for the byte at 0x0147, or `None` where no hardware is known for it.
    ///
    /// Source: Pan Docs, "The Cartridge Header"; the clocks of TAMA5 and HuC3 and the on-chip
    /// memories of MBC2, MBC7 and TAMA5 are described with those chips.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        let (mapper, ram, parts) = match code {
            0x00 => (Mapper::RomOnly, Ram::None, 0),
            0x01 => (Mapper::Mbc1, Ram::None, 0),
            0x02 => (Mapper::Mbc1, Ram::Sized, 0),
            0x03 => (Mapper::Mbc1, Ram::Sized, BATTERY),
            0x05 => (Mapper::Mbc2, Ram::BuiltIn(512), 0),
            0x06 => (Mapper::Mbc2, Ram::BuiltIn(512), BATTERY),
            0x08 => (Mapper::RomOnly, Ram::Sized, 0),
            0x09 => (Mapper::RomOnly, Ram::Sized, BATTERY),
            0x0B => (Mapper::Mmm01, Ram::None, 0),
            0x0C => (Mapper::Mmm01, Ram::Sized, 0),
            0x0D => (Mapper::Mmm01, Ram::Sized, BATTERY),
            0x0F => (Mapper::Mbc3, Ram::None, TIMER | BATTERY),
            0x10 => (Mapper::Mbc3, Ram::Sized, TIMER | BATTERY),
            0x11 => (Mapper::Mbc3, Ram::None, 0),
            0x12 => (Mapper::Mbc3, Ram::Sized, 0),
            0x13 => (Mapper::Mbc3, Ram::Sized, BATTERY),
            0x19 => (Mapper::Mbc5, Ram::None, 0),
            0x1A => (Mapper::Mbc5, Ram::Sized, 0),
            0x1B => (Mapper::Mbc5, Ram::Sized, BATTERY),
            0x1C => (Mapper::Mbc5, Ram::None, RUMBLE),
            0x1D => (Mapper::Mbc5, Ram::Sized, RUMBLE),
            0x1E => (Mapper::Mbc5, Ram::Sized, RUMBLE | BATTERY),
            0x20 => (Mapper::Mbc6, Ram::Optional, BATTERY),
            0x22 => (Mapper::Mbc7, Ram::BuiltIn(256), RUMBLE | BATTERY),
            0xFC => (Mapper::PocketCamera, Ram::Sized, BATTERY),
            0xFD => (Mapper::Tama5, Ram::BuiltIn(32), TIMER | BATTERY),
            0xFE => (Mapper::HuC3, Ram::Sized, TIMER | BATTERY),
            0xFF => (Mapper::HuC1, Ram::Sized, BATTERY),
            _ => return None,
        };
        Some(Self {
            code,
            mapper,
            ram,
            has_battery: parts & BATTERY != 0,
            has_timer: parts & TIMER != 0,
            has_rumble: parts & RUMBLE != 0,
        })
    }

    /// Every known type, by rising code.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).filter_map(Self::from_code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_reports_the_code_it_was_found_by() {
        assert_eq!(CartridgeType::all().count(), 28);
        for kind in CartridgeType::all() {
            assert_eq!(CartridgeType::from_code(kind.code), Some(kind));
        }
    }

    #[test]
    fn only_mbc5_and_mbc7_can_rumble() {
        for kind in CartridgeType::all().filter(|kind| kind.has_rumble) {
            assert!(matches!(kind.mapper, Mapper::Mbc5 | Mapper::Mbc7), "{kind:?}");
        }
    }

    #[test]
    fn an_mbc1_gives_up_ram_banks_for_a_large_rom() {
        assert_eq!(Mapper::Mbc1.max_ram_bytes(512 * 1024), 32 * 1024);
        assert_eq!(Mapper::Mbc1.max_ram_bytes(1024 * 1024), 8 * 1024);
    }
}
