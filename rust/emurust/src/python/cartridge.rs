//! `emurust.CartridgeHeader`.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::cartridge::{self, CgbSupport, Destination, HeaderError, MAX_ROM_BYTES};

pyo3::create_exception!(
    emurust,
    CartridgeError,
    PyValueError,
    "A cartridge image that cannot be what its header says."
);

/// What a Game Boy cartridge image says about itself.
#[pyclass(frozen, eq, hash, module = "emurust")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct CartridgeHeader(cartridge::CartridgeHeader);

#[pymethods]
impl CartridgeHeader {
    /// Reads the header of a whole image given as a bytes-like object.
    #[classmethod]
    fn from_bytes(_cls: &Bound<'_, PyType>, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Ok(buffer) = PyBuffer::<u8>::get(data) else {
            return Err(PyTypeError::new_err(format!(
                "CartridgeHeader.from_bytes got {}; it takes the whole image as bytes, bytearray \
                 or another buffer of unsigned bytes; to read a file use \
                 CartridgeHeader.from_path",
                data.get_type().name()?
            )));
        };
        parse(&buffer.to_vec(data.py())?)
            .map_err(|error| CartridgeError::new_err(error.to_string()))
    }

    /// Reads the header of the image in a file.
    #[classmethod]
    #[expect(clippy::needless_pass_by_value, reason = "extracted from a Python object")]
    fn from_path(_cls: &Bound<'_, PyType>, path: PathBuf) -> PyResult<Self> {
        let image = read_image(&path).map_err(|error| {
            let message = format!(
                "cannot read the cartridge image {}: {error}; give the path of a readable ROM file",
                path.display()
            );
            io::Error::new(error.kind(), message)
        })?;
        parse(&image)
            .map_err(|error| CartridgeError::new_err(format!("{}: {error}", path.display())))
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    #[getter]
    fn title_length(&self) -> usize {
        self.0.title_form.chars()
    }

    #[getter]
    fn manufacturer_code(&self) -> Option<&str> {
        self.0.manufacturer_code.as_deref()
    }

    #[getter]
    fn cgb_flag(&self) -> u8 {
        self.0.cgb_flag
    }

    #[getter]
    fn cgb_support(&self) -> &'static str {
        match self.0.cgb_support() {
            CgbSupport::None => "none",
            CgbSupport::Optional => "optional",
            CgbSupport::Required => "required",
        }
    }

    #[getter]
    fn sgb_flag(&self) -> u8 {
        self.0.sgb_flag
    }

    #[getter]
    fn supports_sgb(&self) -> bool {
        self.0.supports_sgb()
    }

    #[getter]
    fn licensee_code(&self) -> &str {
        &self.0.licensee_code
    }

    #[getter]
    fn old_licensee_code(&self) -> u8 {
        self.0.old_licensee_code
    }

    #[getter]
    fn cartridge_type(&self) -> u8 {
        self.0.kind.code
    }

    #[getter]
    fn mapper(&self) -> &'static str {
        self.0.kind.mapper.name()
    }

    #[getter]
    fn has_ram(&self) -> bool {
        self.0.has_ram()
    }

    #[getter]
    fn has_battery(&self) -> bool {
        self.0.kind.has_battery
    }

    #[getter]
    fn has_timer(&self) -> bool {
        self.0.kind.has_timer
    }

    #[getter]
    fn has_rumble(&self) -> bool {
        self.0.kind.has_rumble
    }

    #[getter]
    fn rom_bytes(&self) -> usize {
        self.0.rom_bytes
    }

    #[getter]
    fn rom_banks(&self) -> usize {
        self.0.rom_banks()
    }

    #[getter]
    fn ram_bytes(&self) -> usize {
        self.0.ram_bytes
    }

    #[getter]
    fn ram_banks(&self) -> usize {
        self.0.ram_banks()
    }

    #[getter]
    fn destination(&self) -> &'static str {
        match self.0.destination {
            Destination::Japan => "japan",
            Destination::Overseas => "overseas",
            Destination::Unknown(_) => "unknown",
        }
    }

    #[getter]
    fn mask_version(&self) -> u8 {
        self.0.mask_version
    }

    #[getter]
    fn header_checksum(&self) -> u8 {
        self.0.header_checksum
    }

    #[getter]
    fn computed_header_checksum(&self) -> u8 {
        self.0.computed_header_checksum
    }

    #[getter]
    fn header_checksum_valid(&self) -> bool {
        self.0.header_checksum_valid()
    }

    #[getter]
    fn global_checksum(&self) -> u16 {
        self.0.global_checksum
    }

    #[getter]
    fn computed_global_checksum(&self) -> u16 {
        self.0.computed_global_checksum
    }

    #[getter]
    fn global_checksum_valid(&self) -> bool {
        self.0.global_checksum_valid()
    }

    #[getter]
    fn logo_valid(&self) -> bool {
        self.0.logo_valid
    }

    fn __repr__(&self) -> String {
        let header = &self.0;
        format!(
            "CartridgeHeader(title={:?}, mapper={:?}, rom_bytes={}, ram_bytes={})",
            header.title,
            header.kind.mapper.name(),
            header.rom_bytes,
            header.ram_bytes
        )
    }
}

fn parse(image: &[u8]) -> Result<CartridgeHeader, HeaderError> {
    cartridge::CartridgeHeader::parse(image).map(CartridgeHeader)
}

/// Reads at most one byte more than any cartridge has, so that no mistaken file fills the memory.
fn read_image(path: &Path) -> io::Result<Vec<u8>> {
    let mut image = Vec::new();
    File::open(path)?.take(MAX_ROM_BYTES as u64 + 1).read_to_end(&mut image)?;
    Ok(image)
}
