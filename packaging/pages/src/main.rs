//! `ebbtide-pages DIR` writes man pages and completions of all programs below DIR.

use anyhow::Context;
use std::path::PathBuf;

fn main() -> anyhow::Result<()> {
    let to = std::env::args_os().nth(1).map(PathBuf::from);
    let to = to.context("usage: ebbtide-pages DIR")?;
    for program in ebbtide_pages::programs() {
        let name = program.name().to_owned();
        program
            .write(&to)
            .with_context(|| format!("cannot write the pages of {name} below {}", to.display()))?;
    }
    Ok(())
}
