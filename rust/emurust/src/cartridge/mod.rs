//! Cartridge images: what their header says about them.

mod error;
mod header;
mod kind;
mod size;
mod title;

pub use error::HeaderError;
pub use header::{CartridgeHeader, CgbSupport, Destination};
pub use kind::{CartridgeType, Mapper};
pub use size::{MAX_ROM_BYTES, RAM_BANK_BYTES, ROM_BANK_BYTES};
pub use title::TitleForm;
