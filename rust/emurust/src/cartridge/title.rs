//! The 16 bytes from 0x0134: a title, and in later cartridges a manufacturer code and a colour flag.

/// How many characters of the title field are the title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TitleForm {
    /// The original form: all 16 bytes.
    Chars16,
    /// The last byte is the colour flag.
    Chars15,
    /// The last byte is the colour flag and the four before it are the manufacturer code.
    Chars11,
}

impl TitleForm {
    /// The form of a title field.
    ///
    /// The header does not say which form it uses. A field whose last byte has bit 7 set has a
    /// colour flag; the four bytes before it are taken for a manufacturer code when they have the
    /// shape that all known codes share: a product letter, two letters or digits, a region letter.
    pub(super) fn of(field: &[u8; 16]) -> Self {
        if field[15] & 0x80 == 0 {
            return Self::Chars16;
        }
        let known_product = b"ABHKV".contains(&field[11]);
        let is_identifier = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        let has_code = known_product
            && field[12..14].iter().all(is_identifier)
            && field[14].is_ascii_uppercase();
        if has_code { Self::Chars11 } else { Self::Chars15 }
    }

    /// How many characters the title has at most.
    #[must_use]
    pub const fn chars(self) -> usize {
        match self {
            Self::Chars16 => 16,
            Self::Chars15 => 15,
            Self::Chars11 => 11,
        }
    }
}

/// Text without its trailing padding; bytes that are not printable ASCII become U+FFFD.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|&byte| byte != 0 && byte != b' ').map_or(0, |last| last + 1);
    let printable = |&byte: &u8| match byte {
        b' '..=b'~' => char::from(byte),
        _ => char::REPLACEMENT_CHARACTER,
    };
    bytes[..end].iter().map(printable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(title: &[u8]) -> [u8; 16] {
        let mut field = [0; 16];
        field[..title.len()].copy_from_slice(title);
        field
    }

    #[test]
    fn forms_follow_the_colour_flag_and_the_code() {
        assert_eq!(TitleForm::of(&field(b"SIXTEEN LETTERS!")), TitleForm::Chars16);
        assert_eq!(TitleForm::of(&field(b"FIFTEEN LETTERS\x80")), TitleForm::Chars15);
        assert_eq!(TitleForm::of(&field(b"SHORT\0\0\0\0\0\0AXYE\xC0")), TitleForm::Chars11);
        assert_eq!(TitleForm::of(&field(b"SHORT\0\0\0\0\0\0\0\0\0\0\x80")), TitleForm::Chars15);
    }

    #[test]
    fn text_drops_padding_and_marks_what_is_not_printable() {
        assert_eq!(text(b"A B \0\0"), "A B");
        assert_eq!(text(b"\0\0\0"), "");
        assert_eq!(text(b"A\x01\xFFB"), "A\u{FFFD}\u{FFFD}B");
        assert_eq!(text(b"A\0B\0"), "A\u{FFFD}B");
    }
}
