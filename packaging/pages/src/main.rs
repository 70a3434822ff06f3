//! `ebbtide-pages DIR` writes man pages and completions of all programs below DIR.

use std::io::{Error, ErrorKind, Result};
use std::path::PathBuf;

fn main() -> Result<()> {
    let to = std::env::args_os().nth(1).map(PathBuf::from);
    let to = to.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "usage: ebbtide-pages DIR"))?;
    for program in ebbtide_pages::programs() {
        let name = program.name().to_owned();
        program.write(&to).map_err(|error| {
            let text = format!("the pages of {name} below {}: {error}", to.display());
            Error::new(error.kind(), text)
        })?;
    }
    Ok(())
}
