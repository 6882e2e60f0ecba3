//! The size codes at 0x0148 (ROM) and 0x0149 (RAM).

/// Bytes of one switchable ROM bank.
pub const ROM_BANK_BYTES: usize = 16 * 1024;
/// Bytes of one switchable RAM bank.
pub const RAM_BANK_BYTES: usize = 8 * 1024;
/// The largest ROM that a header can name.
pub const MAX_ROM_BYTES: usize = 8 * 1024 * 1024;
/// The largest RAM that a header can name.
pub(super) const MAX_RAM_BYTES: usize = 128 * 1024;

/// ROM bytes for the code at 0x0148: 32 KiB doubled `code` times, up to 8 MiB.
///
/// The codes 0x52 to 0x54 of some lists are refused: no cartridge is known to use them.
pub(super) fn rom_bytes(code: u8) -> Option<usize> {
    (code <= 8).then(|| (2 * ROM_BANK_BYTES) << code)
}

/// RAM bytes for the code at 0x0149. Code 1 was never used by a cartridge and has no agreed size.
pub(super) fn ram_bytes(code: u8) -> Option<usize> {
    let banks = match code {
        0 => 0,
        2 => 1,
        3 => 4,
        4 => 16,
        5 => 8,
        _ => return None,
    };
    Some(banks * RAM_BANK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rom_codes_double_from_32_kib_to_8_mib() {
        assert_eq!(rom_bytes(0), Some(32 * 1024));
        for code in 1..=8 {
            assert_eq!(rom_bytes(code), rom_bytes(code - 1).map(|bytes| bytes * 2));
        }
        assert_eq!(rom_bytes(8), Some(MAX_ROM_BYTES));
        assert!((9..=u8::MAX).all(|code| rom_bytes(code).is_none()));
    }

    #[test]
    fn ram_codes_are_whole_banks_and_not_in_order() {
        let kib = |code| ram_bytes(code).map(|bytes| bytes / 1024);
        let expected = [Some(0), None, Some(8), Some(32), Some(128), Some(64)];
        assert_eq!([0, 1, 2, 3, 4, 5].map(kib), expected);
        assert!((6..=u8::MAX).all(|code| ram_bytes(code).is_none()));
    }
}
