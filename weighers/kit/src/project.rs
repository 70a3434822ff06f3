//! New plugin projects: small, and with tests that pass at once.

use crate::{KitError, templates};
use std::fs;
use std::path::{Path, PathBuf};

/// In which language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust.
    Rust,
    /// Go.
    Go,
    /// Python, with its interpreter inside.
    Python,
    /// C.
    C,
}

/// What a new plugin is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProjectKind {
    /// It says how good hosts are.
    Weigher,
    /// It says what victims cost.
    CostModule,
    /// It says which hosts pass.
    Filter,
}

/// What is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProject {
    /// The plugin's name.
    pub name: String,
    /// What it is.
    pub kind: ProjectKind,
    /// In which language.
    pub language: Language,
}

/// Longest name: of a file and a crate, too.
const LONGEST: usize = 60;

/// What the templates leave open.
struct Words {
    kind: &'static str,
    interface: &'static str,
    world: &'static str,
    used: &'static str,
    types: String,
}

impl Words {
    fn of(project: &NewProject) -> Self {
        let types = templates::types(project.language, project.kind);
        match project.kind {
            ProjectKind::Weigher => Self {
                kind: "weigher",
                interface: "weigher",
                world: "weigher-plugin",
                used: "`multiplier = 2.0` makes it count twice as much, `settings = { floor = \"4\" }` is read by `describe`.",
                types,
            },
            ProjectKind::Filter => Self {
                kind: "filter",
                interface: "filter",
                world: "filter-plugin",
                used: "`on_failure = \"refuse\"` lets no host pass while it fails, `settings = { most = \"60\" }` is read by `describe`.",
                types,
            },
            ProjectKind::CostModule => Self {
                kind: "cost module",
                interface: "cost-module",
                world: "cost-plugin",
                used: "and `cost_module = \"{{name}}\"` under `[engine]`.",
                types,
            },
        }
    }

    fn fill(&self, text: &str, name: &str) -> String {
        text.replace("{{kind}}", self.kind)
            .replace("{{interface}}", self.interface)
            .replace("{{world}}", self.world)
            .replace("{{use}}", self.used)
            .replace("{{abi}}", self.types.trim_end())
            .replace("{{name}}", name)
    }
}

/// The contract. The linker that makes components of C and Go takes the only world that it finds,
/// so there the others are left out.
fn contract(project: &NewProject) -> String {
    let whole = ebbtide_wasm::WIT;
    if !matches!(project.language, Language::C | Language::Go) {
        return whole.to_owned();
    }
    let worlds = [
        (ProjectKind::Weigher, "/// A plugin that is a weigher."),
        (
            ProjectKind::CostModule,
            "/// A plugin that is a cost module.",
        ),
        (ProjectKind::Filter, "/// A plugin that is a filter."),
    ];
    let others = worlds.into_iter().filter(|(kind, _)| *kind != project.kind);
    let one = others.fold(whole.to_owned(), |text, (_, other)| {
        without_world(&text, other)
    });
    format!("{}\n", one.trim_end())
}

/// A contract without the world that begins with a comment.
fn without_world(text: &str, comment: &str) -> String {
    let Some((before, rest)) = text.split_once(comment) else {
        return text.to_owned();
    };
    let after = rest.split_once("}\n").map_or("", |(_, after)| after);
    format!("{before}{}", after.trim_start())
}

/// The files of a project, by their paths in it.
///
/// # Errors
/// [`KitError::Name`].
pub fn files(project: &NewProject) -> Result<Vec<(PathBuf, String)>, KitError> {
    let name = &project.name;
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    let begins = name.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
    if !begins || name.len() > LONGEST || !name.bytes().all(allowed) {
        return Err(KitError::Name(name.clone()));
    }
    let words = Words::of(project);
    let mut files: Vec<(PathBuf, String)> = vec![
        (
            ".gitignore".into(),
            templates::ignored(project.language).to_owned(),
        ),
        ("wit/plugin.wit".into(), contract(project)),
    ];
    for (path, text) in templates::parts(project.language, project.kind) {
        let text = words.fill(text, name);
        match files.iter_mut().find(|(known, _)| known == Path::new(path)) {
            Some((_, before)) => before.push_str(&text),
            None => files.push((path.into(), text)),
        }
    }
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
