//! The header of synthetic cartridge images.

use emurust::cartridge::{
    CartridgeHeader, CartridgeType, CgbSupport, Destination, HeaderError, MAX_ROM_BYTES, Mapper,
    TitleForm,
};

const KIB: usize = 1024;

/// An image of `rom_code`'s size with the given type and RAM code, and nothing else in it.
fn image(kind: u8, rom_code: u8, ram_code: u8) -> Vec<u8> {
    let mut image = vec![0; (32 * KIB) << rom_code];
    image[0x147] = kind;
    image[0x148] = rom_code;
    image[0x149] = ram_code;
    image
}

fn parse(image: &[u8]) -> CartridgeHeader {
    CartridgeHeader::parse(image).expect("the image is consistent")
}

fn refuse(image: &[u8]) -> HeaderError {
    CartridgeHeader::parse(image).expect_err("the image is not consistent")
}

#[test]
fn the_plainest_image_has_the_plainest_header() {
    let header = parse(&image(0, 0, 0));
    assert_eq!(header.title, "");
    assert_eq!(header.title_form, TitleForm::Chars16);
    assert_eq!(header.manufacturer_code, None);
    assert_eq!(header.cgb_support(), CgbSupport::None);
    assert!(!header.supports_sgb());
    assert_eq!(header.kind.mapper, Mapper::RomOnly);
    assert_eq!((header.rom_bytes, header.rom_banks()), (32 * KIB, 2));
    assert_eq!((header.ram_bytes, header.ram_banks(), header.has_ram()), (0, 0, false));
    assert_eq!(header.destination, Destination::Japan);
    assert!(!header.logo_valid);
}

#[test]
fn every_field_is_read_from_its_place() {
    let mut image = image(0x10, 5, 3);
    image[0x134..0x144].copy_from_slice(b"MONSTERS\0\0\0AXYE\xC0");
    image[0x144..0x146].copy_from_slice(b"01");
    image[0x146] = 3;
    image[0x14A] = 1;
    image[0x14B] = 0x33;
    image[0x14C] = 7;
    image[0x14D] = 0xAB;
    image[0x14E..0x150].copy_from_slice(&[0x12, 0x34]);
    let header = parse(&image);
    assert_eq!(header.title, "MONSTERS");
    assert_eq!(header.title_form, TitleForm::Chars11);
    assert_eq!(header.manufacturer_code.as_deref(), Some("AXYE"));
    assert_eq!((header.cgb_flag, header.cgb_support()), (0xC0, CgbSupport::Required));
    assert!(header.supports_sgb());
    assert_eq!((header.licensee_code.as_str(), header.old_licensee_code), ("01", 0x33));
    assert_eq!(header.kind.mapper, Mapper::Mbc3);
    assert!(header.kind.has_timer && header.kind.has_battery && !header.kind.has_rumble);
    assert_eq!((header.rom_bytes, header.rom_banks()), (1024 * KIB, 64));
    assert_eq!((header.ram_bytes, header.ram_banks()), (32 * KIB, 4));
    assert_eq!((header.destination, header.mask_version), (Destination::Overseas, 7));
    assert_eq!((header.header_checksum, header.global_checksum), (0xAB, 0x1234));
}

#[test]
fn the_super_console_wants_flag_and_new_licensee_together() {
    for (flag, licensee, expected) in [(3, 0x33, true), (3, 0x01, false), (0, 0x33, false)] {
        let mut image = image(0, 0, 0);
        image[0x146] = flag;
        image[0x14B] = licensee;
        assert_eq!(parse(&image).supports_sgb(), expected);
    }
}

#[test]
fn licensee_and_destination_codes_without_meaning_stay_visible() {
    let mut image = image(0, 0, 0);
    image[0x14A] = 0x80;
    image[0x14B] = 0x0A;
    let header = parse(&image);
    assert_eq!(header.licensee_code, "0A");
    assert_eq!(header.destination, Destination::Unknown(0x80));
}

#[test]
fn a_right_checksum_is_valid_and_any_changed_byte_makes_it_wrong() {
    let mut image = image(1, 1, 0);
    for (index, byte) in image.iter_mut().enumerate().skip(0x150) {
        *byte = u8::try_from(index % 251).expect("below 256");
    }
    image[0x14D] = parse(&image).computed_header_checksum;
    let sum = parse(&image).computed_global_checksum;
    image[0x14E..0x150].copy_from_slice(&sum.to_be_bytes());
    let header = parse(&image);
    assert!(header.header_checksum_valid() && header.global_checksum_valid());

    for address in [0x134, 0x140, 0x14C] {
        let mut changed = image.clone();
        changed[address] ^= 0x20;
        assert!(!parse(&changed).header_checksum_valid(), "byte {address:#x}");
    }
    for address in [0x000, 0x14D, 0x150, 64 * KIB - 1] {
        let mut changed = image.clone();
        changed[address] ^= 0x01;
        assert!(!parse(&changed).global_checksum_valid(), "byte {address:#x}");
    }
}

#[test]
fn checksums_of_known_bytes() {
    let mut image = image(0, 0, 0);
    // 25 bytes from 0x134 to 0x14C: each takes one more than itself away.
    assert_eq!(parse(&image).computed_header_checksum, 0u8.wrapping_sub(25));
    image[0x134] = 5;
    assert_eq!(parse(&image).computed_header_checksum, 0u8.wrapping_sub(30));
    image[0x7FFF] = 0xFF;
    image[0x14E] = 0xFF;
    assert_eq!(parse(&image).computed_global_checksum, 5 + 0xFF);
}

#[test]
fn every_type_with_every_pair_of_size_codes_is_read_or_refused_for_a_reason() {
    for kind in CartridgeType::all() {
        for (rom_code, ram_code) in (0..=8).flat_map(|rom| (0..=5).map(move |ram| (rom, ram))) {
            let image = image(kind.code, rom_code, ram_code);
            match CartridgeHeader::parse(&image) {
                Ok(header) => {
                    assert_eq!(header.rom_bytes, image.len());
                    assert!(header.rom_bytes <= kind.mapper.max_rom_bytes());
                    assert!(header.ram_bytes <= kind.mapper.max_ram_bytes(header.rom_bytes));
                }
                Err(HeaderError::UnknownRamSize(code)) => assert_eq!((code, ram_code), (1, 1)),
                Err(HeaderError::RamWithoutSupport { .. }) => assert_ne!(ram_code, 0),
                Err(HeaderError::RamSizeMissing(_)) => assert_eq!(ram_code, 0),
                Err(HeaderError::RomBeyondMapper { rom_bytes, .. }) => {
                    assert!(rom_bytes > kind.mapper.max_rom_bytes());
                }
                Err(HeaderError::RamBeyondMapper { rom_bytes, ram_bytes, .. }) => {
                    assert!(ram_bytes > kind.mapper.max_ram_bytes(rom_bytes));
                }
                Err(other) => panic!("{kind:?} {rom_code} {ram_code}: {other}"),
            }
        }
    }
}

#[test]
fn types_with_ram_in_their_name_want_its_size_and_others_refuse_it() {
    let with_ram = [
        0x02, 0x03, 0x08, 0x09, 0x0C, 0x0D, 0x10, 0x12, 0x13, 0x1A, 0x1B, 0x1D, 0x1E, 0xFC, 0xFE,
        0xFF,
    ];
    for kind in CartridgeType::all().filter(|kind| kind.mapper != Mapper::Mbc6) {
        let sized = with_ram.contains(&kind.code);
        assert_eq!(CartridgeHeader::parse(&image(kind.code, 0, 2)).is_ok(), sized, "{kind:?}");
        assert_eq!(CartridgeHeader::parse(&image(kind.code, 0, 0)).is_ok(), !sized, "{kind:?}");
    }
    assert!(!parse(&image(0x20, 0, 0)).has_ram());
    assert!(parse(&image(0x20, 5, 3)).has_ram());
}

#[test]
fn memory_on_the_chip_needs_no_size_code() {
    for (kind, bytes) in [(0x05, 512), (0x06, 512), (0x22, 256), (0xFD, 32)] {
        let header = parse(&image(kind, 0, 0));
        assert_eq!((header.ram_bytes, header.ram_banks()), (bytes, 1));
        assert!(matches!(refuse(&image(kind, 0, 2)), HeaderError::RamWithoutSupport { .. }));
    }
}

#[test]
fn images_that_end_before_the_header_are_refused() {
    let whole = image(0, 0, 0);
    for len in 0..0x150 {
        assert_eq!(refuse(&whole[..len]), HeaderError::TooShort(len));
    }
    assert_eq!(
        refuse(&whole[..0x150]),
        HeaderError::WrongLength { len: 0x150, rom_bytes: 32 * KIB }
    );
}

#[test]
fn codes_without_meaning_are_refused() {
    for code in 0..=u8::MAX {
        let mut image = image(0, 0, 0);
        image[0x147] = code;
        if CartridgeType::from_code(code).is_none() {
            assert_eq!(refuse(&image), HeaderError::UnknownCartridgeType(code));
        }
    }
    for code in (9..=u8::MAX).step_by(7) {
        let mut image = image(0, 0, 0);
        image[0x148] = code;
        assert_eq!(refuse(&image), HeaderError::UnknownRomSize(code));
    }
    for code in [1, 6, 0x80, 0xFF] {
        assert_eq!(refuse(&image(3, 0, code)), HeaderError::UnknownRamSize(code));
    }
}

#[test]
fn no_byte_of_the_header_can_make_the_parser_panic() {
    for address in 0x100..0x150 {
        for value in 0..=u8::MAX {
            let mut image = image(0x1B, 0, 2);
            image[address] = value;
            if let Err(error) = CartridgeHeader::parse(&image) {
                assert!((0x147..0x14A).contains(&address), "byte {address:#x}: {error}");
            }
        }
    }
}

#[test]
fn messages_say_what_was_given_what_is_accepted_and_what_to_do() {
    let cut = image(1, 2, 0);
    let mut longer = image(1, 1, 0);
    longer.resize(96 * KIB, 0);
    let mut copier = image(0, 0, 0);
    copier.resize(32 * KIB + 512, 0);
    let cases: [(Vec<u8>, [&str; 3]); 11] = [
        (vec![0; 16], ["16 bytes", "ends at byte 336", "whole ROM file"]),
        (image(0x04, 0, 0), ["0x04 at 0x0147", "accepted are 0x00, 0x01", "correct that byte"]),
        (image(0, 0, 1), ["0x01 at 0x0149", "0x02 (8 KiB)", "correct that byte"]),
        (image(0, 0, 2), ["8 KiB of RAM", "0x00 (ROM only) takes no RAM", "set 0x0149 to 0x00"]),
        (image(3, 0, 0), ["0x03 (MBC1) has RAM", "0x00 (none)", "set 0x0149 to 0x02"]),
        (image(0, 1, 0), ["64 KiB of ROM", "at most 32 KiB", "correct the type"]),
        (image(3, 5, 3), ["32 KiB of RAM", "1 MiB of ROM addresses at most 8 KiB", "correct"]),
        (image(0x06, 4, 0), ["512 KiB of ROM", "0x06 (MBC2)", "at most 256 KiB"]),
        (cut[..100_000].to_vec(), ["truncated", "100000 bytes", "131072 (128 KiB, 8 banks"]),
        (longer, ["too long", "98304 bytes", "cut the file"]),
        (copier, ["does not end with a bank", "33280 bytes", "remove what was put"]),
    ];
    for (image, parts) in cases {
        let message = refuse(&image).to_string();
        for part in parts {
            assert!(message.contains(part), "{part:?} is not in {message:?}");
        }
    }
}

#[test]
fn the_largest_image_is_read_and_nothing_larger_exists() {
    let mut largest = image(0x1B, 8, 4);
    assert_eq!(parse(&largest).rom_bytes, MAX_ROM_BYTES);
    assert_eq!(parse(&largest).ram_bytes, 128 * KIB);
    largest.push(0);
    let expected = HeaderError::WrongLength { len: MAX_ROM_BYTES + 1, rom_bytes: MAX_ROM_BYTES };
    assert_eq!(refuse(&largest), expected);
}
