//! Charts of commands go into files.

use crate::Context;
use crate::errors::CliError;
use ebbtide_chart::Figure;
use std::path::Path;

/// Draws a figure into a file and says so.
///
/// # Errors
/// [`CliError::Chart`] if it cannot be drawn, [`CliError::File`] if it cannot be written.
pub fn write(context: &mut Context, path: &Path, figure: &Figure) -> Result<(), CliError> {
    let svg = figure.svg()?;
    ebbtide_files::write(path, svg)?;
    context.output.say(&format!("wrote {}", path.display()));
    Ok(())
}
