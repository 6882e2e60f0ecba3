//! The Python module `emurust._core`. Its types are described in `emurust/_core.pyi`.

mod cartridge;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::cartridge::{CartridgeError, CartridgeHeader};
}
