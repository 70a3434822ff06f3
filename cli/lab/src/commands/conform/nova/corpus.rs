//! Reading a file of cases.

use crate::error::LabError;
use ebbtide_shell::errors::CliError;
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// The first two bytes of every gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Lines that are not blank, each with its number in the file.
///
/// # Errors
/// [`LabError::Corpus`] for a file that cannot be read, is no text, or has no lines.
pub(super) fn read(path: &Path) -> Result<Vec<(usize, String)>, CliError> {
    let bad = |problem: String| {
        CliError::from(LabError::Corpus {
            path: path.to_owned(),
            problem,
        })
    };
    let cannot = |error: io::Error| bad(format!("cannot be read: {error}"));
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes).map_err(cannot)?;
    } else {
        let file = File::open(path).map_err(cannot)?;
        BufReader::new(file)
            .read_to_end(&mut bytes)
            .map_err(cannot)?;
    }
    if bytes.starts_with(&GZIP) {
        let mut plain = Vec::new();
        MultiGzDecoder::new(bytes.as_slice())
            .read_to_end(&mut plain)
            .map_err(|error| bad(format!("is no good gzip file: {error}")))?;
        bytes = plain;
    }
    let text =
        String::from_utf8(bytes).map_err(|error| bad(format!("is no UTF-8 text: {error}")))?;
    let lines: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(at, line)| (at + 1, line.to_owned()))
        .collect();
    if lines.is_empty() {
        return Err(bad("has no cases".to_owned()));
    }
    Ok(lines)
}
