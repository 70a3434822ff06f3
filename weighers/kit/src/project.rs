//! New plugin projects: small, and with tests that pass at once.

use crate::KitError;
use std::fs;
use std::path::{Path, PathBuf};

/// In which language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust, as a WebAssembly component.
    Rust,
    /// Go.
    Go,
    /// Python.
    Python,
    /// C.
    C,
}

impl Language {
    fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Go => "go",
            Self::Python => "python",
            Self::C => "c",
        }
    }
}

/// What is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProject {
    /// The plugin's name.
    pub name: String,
    /// True for a cost module, false for a weigher.
    pub is_cost_module: bool,
    /// In which language.
    pub language: Language,
}

const CARGO: &str = include_str!("../templates/Cargo.toml.in");
const README: &str = include_str!("../templates/README.md.in");
/// What is worked out, and what Ebbtide calls.
type Source = [(&'static str, &'static str); 2];

const RUST_WEIGHER: Source = [
    (
        "src/lib.rs",
        include_str!("../templates/rust-weigher/lib.rs.in"),
    ),
    (
        "src/component.rs",
        include_str!("../templates/rust-weigher/component.rs.in"),
    ),
];
const RUST_COST: Source = [
    (
        "src/lib.rs",
        include_str!("../templates/rust-cost/lib.rs.in"),
    ),
    (
        "src/component.rs",
        include_str!("../templates/rust-cost/component.rs.in"),
    ),
];

/// Longest name: of a file and a crate, too.
const LONGEST: usize = 60;

/// The files of a project, by their paths in it.
///
/// # Errors
/// [`KitError::Name`] or [`KitError::NoTemplate`].
pub fn files(project: &NewProject) -> Result<Vec<(PathBuf, String)>, KitError> {
    let name = &project.name;
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    if !begins || name.len() > LONGEST || !name.bytes().all(allowed) {
        return Err(KitError::Name(name.clone()));
    }
    let (kind, source, used) = match project.is_cost_module {
        false => (
            "weigher",
            RUST_WEIGHER,
            "`multiplier = 2.0` makes it count twice as much, `settings = { floor = \"4\" }` is read by `describe`.",
        ),
        true => (
            "cost module",
            RUST_COST,
            "and `cost_module = \"{{name}}\"` under `[engine]`.",
        ),
    };
    if project.language != Language::Rust {
        return Err(KitError::NoTemplate {
            kind,
            language: project.language.as_str(),
        });
    }
    let fill = |text: &str| {
        text.replace("{{kind}}", kind)
            .replace("{{use}}", used)
            .replace("{{name}}", name)
    };
    let mut files: Vec<(PathBuf, String)> = vec![
        ("Cargo.toml".into(), fill(CARGO)),
        ("README.md".into(), fill(README)),
        (".gitignore".into(), "/target\n".to_owned()),
        ("wit/plugin.wit".into(), ebbtide_wasm::WIT.to_owned()),
    ];
    files.extend(source.map(|(path, text)| (path.into(), fill(text))));
    Ok(files)
}

/// Writes a project into a new directory.
///
/// # Errors
/// As [`files`]; [`KitError::Exists`] if there is something already; [`KitError::Io`].
pub fn write(project: &NewProject, into: &Path) -> Result<Vec<PathBuf>, KitError> {
    let files = files(project)?;
    if into.exists() {
        return Err(KitError::Exists(into.to_owned()));
    }
    let mut written = Vec::with_capacity(files.len());
    for (path, text) in files {
        let path = into.join(path);
        let done = path
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::write(&path, text));
        done.map_err(|source| KitError::Io {
            path: path.clone(),
            source,
        })?;
        written.push(path);
    }
    Ok(written)
}
