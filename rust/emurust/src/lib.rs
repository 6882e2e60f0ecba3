//! The Game Boy core of twinenv.
//!
//! The core modules depend on the standard library alone. The feature `python` adds the binding
//! that becomes the Python module `emurust._core`.

pub mod cartridge;

#[cfg(feature = "python")]
mod python;
