//! Page sizes and locked memory, as flavor and image ask for them.

use super::{Constraints, boolean, fault};
use crate::fault::NovaException;
use crate::numa::{ANY_PAGES, LARGE_PAGES, SMALL_PAGES};
use crate::python::number;

/// What `oslo_utils.strutils` knows of prefixes, in powers of 1024.
const PREFIXES: [(char, i32); 4] = [('K', 1), ('M', 2), ('G', 3), ('T', 4)];
/// Bytes to KiB.
const KIB: f64 = 1024.0;

/// Bytes of text such as `2MB` (`strutils.string_to_bytes`, IEC, rounded up); `None`: no size.
fn bytes(text: &str) -> Option<f64> {
    let (text, bits) = match text.strip_suffix("bit") {
        Some(text) => (text, true),
        None => match text.strip_suffix('b') {
            Some(text) => (text, true),
            None => (text.strip_suffix('B')?, false),
        },
    };
    let text_of = |prefix: char| {
        let number = text.strip_suffix('i').unwrap_or(text);
        number.strip_suffix(prefix)
    };
    let mut prefixes = PREFIXES.iter();
    let with_prefix = prefixes.find_map(|(prefix, power)| Some((text_of(*prefix)?, *power)));
    let (magnitude, power) = with_prefix.unwrap_or((text, 0));
    let unsigned = magnitude.strip_prefix(['+', '-']).unwrap_or(magnitude);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or(("", unsigned));
    let is_digits = |text: &str| text.chars().all(|c| number::digit(c).is_some());
    if fraction.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let magnitude = number::float(magnitude)?;
    let magnitude = if bits { magnitude / 8.0 } else { magnitude };
    Some((magnitude * KIB.powi(power)).ceil())
}

/// A page size in KiB, or one of the symbolic sizes.
fn page_size(request: &str) -> Result<f64, NovaException> {
    let symbolic = match request {
        "any" => Some(ANY_PAGES),
        "large" => Some(LARGE_PAGES),
        "small" => Some(SMALL_PAGES),
        _ => None,
    };
    #[allow(clippy::cast_precision_loss, reason = "Python divides as floats, too")]
    if let Some(size) = symbolic {
        return Ok(size as f64);
    }
    #[allow(clippy::cast_precision_loss, reason = "no page has 2^53 KiB")]
    if !request.is_empty() && request.chars().all(|c| number::digit(c).is_some()) {
        return Ok(number::int(request).unwrap_or(i128::MAX) as f64);
    }
    let bytes = bytes(request).ok_or_else(|| fault("MemoryPageSizeInvalid", "mem_page_size"))?;
    Ok(bytes / KIB)
}

impl Constraints<'_> {
    /// `_get_numa_pagesize_constraint`: KiB, or one of the symbolic sizes; `None`: nothing asked.
    pub(super) fn page_size(self) -> Result<Option<f64>, NovaException> {
        let present = |text: &&str| !text.is_empty();
        let image = self.property_text("hw_mem_page_size").filter(present);
        let Some(flavor) = self.extra_spec("hw:mem_page_size").filter(present) else {
            return match image {
                Some(_) => Err(fault("MemoryPageSizeForbidden", "mem_page_size")),
                None => Ok(None),
            };
        };
        let mut size = page_size(flavor)?;
        if let Some(image) = image {
            #[allow(clippy::cast_precision_loss, reason = "small numbers")]
            let is_open = [ANY_PAGES, LARGE_PAGES]
                .map(|size| size as f64)
                .contains(&size);
            if !is_open {
                return Err(fault("MemoryPageSizeForbidden", "mem_page_size"));
            }
            size = page_size(image)?;
        }
        Ok(Some(size))
    }

    /// `get_locked_memory_constraint`.
    pub(super) fn locked_memory(self) -> Result<bool, NovaException> {
        let flavor = self.extra_spec("hw:locked_memory").map(boolean);
        let image = self.property_bool("hw_locked_memory");
        if flavor.is_some() && image.is_some() && flavor != image {
            return Err(fault("FlavorImageLockedMemoryConflict", "locked_memory"));
        }
        let locked = flavor.or(image).unwrap_or(false);
        let said = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
        let has_pages = said(self.extra_spec("hw:mem_page_size"))
            || said(self.property_text("hw_mem_page_size"));
        if locked && !has_pages {
            return Err(fault("LockMemoryForbidden", "locked_memory"));
        }
        Ok(locked)
    }
}
