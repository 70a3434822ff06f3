//! Where bags and prices are read from.

use crate::errors::CliError;
use ebbtide_bag::read::{self, FileOverrides, Format};
use ebbtide_bag::simulate::Prices;
use ebbtide_bag::{Bag, BagError};
use std::path::Path;

/// Reads a bag: JSON if the name ends so, TOML otherwise.
///
/// # Errors
/// [`CliError::BagFile`] for a file that is none, [`CliError::Bag`] for a bag that cannot be
/// planned.
pub fn bag(path: &Path, instead: FileOverrides) -> Result<Bag, CliError> {
    let json = path
        .extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("json"));
    let format = if json { Format::Json } else { Format::Toml };
    read::bag(&text(path)?, format, instead).map_err(|error| of(path, error))
}

/// Reads prices.
///
/// # Errors
/// As [`bag`].
pub fn prices(path: &Path, bag: &Bag) -> Result<Prices, CliError> {
    read::prices(&text(path)?, bag).map_err(|error| of(path, error))
}

fn text(path: &Path) -> Result<String, CliError> {
    std::fs::read_to_string(path).map_err(|error| of(path, BagError::File(error.to_string())))
}

/// What is wrong with a text, with its file.
fn of(path: &Path, error: BagError) -> CliError {
    match error {
        BagError::File(problem) => CliError::BagFile {
            path: path.to_owned(),
            problem,
        },
        other => CliError::Bag(other),
    }
}
