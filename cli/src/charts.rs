//! Charts of commands go into files.

use crate::Context;
use crate::errors::CliError;
use ebbtide_chart::Figure;
use ebbtide_simulator::SimError;
use std::path::Path;

/// Draws a figure into a file and says so.
///
/// # Errors
/// [`CliError::Chart`] if it cannot be drawn, [`CliError::Sim`] if it cannot be written.
pub fn write(context: &mut Context, path: &Path, figure: &Figure) -> Result<(), CliError> {
    let svg = figure.svg()?;
    std::fs::write(path, svg).map_err(|error| SimError::Write {
        path: path.to_owned(),
        problem: error.to_string(),
    })?;
    context.output.say(&format!("wrote {}", path.display()));
    Ok(())
}
