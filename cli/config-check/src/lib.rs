//! Every key of the scheduler's and the agent's configuration and of nova.conf: explained, and
//! files of them judged.
//!
//! - [`registry`] has of each key what its declaration says, beside the field that holds its value.
//! - [`check`] reads a file as its program would, tells all that the program would refuse, and then
//!   what is legal and probably not meant.
//!
//! Invariants: what is an error is so because the program's own code says so, never because of a
//! copy of it; any text has an answer; no answer shows a password.

mod agent;
mod explain;
mod finding;
mod nearest;
mod nova;
mod nova_names;
mod nova_semantics;
pub mod registry;
mod sample;
mod scheduler;
mod secrets;
mod toml_file;
mod weigher_text;
mod weights;

pub use explain::{key_as_text, markdown};
pub use finding::{CheckReport, EffectiveOrder, Finding, Level, Position, WeigherShare, code};
pub use registry::{Applies, ConfigKind, Key, KeyInFile, Type};
pub use sample::sample;

use ebbtide_config::ConfigError;
use std::fs::Metadata;
use std::path::Path;

/// What is asked of the machine besides the file's text.
pub trait Files {
    /// The permissions of the file itself, as in `chmod`; `None` if they are not known.
    fn mode(&self) -> Option<u32>;
    /// The permissions of another file; `None` if they are not known.
    fn mode_of(&self, path: &Path) -> Option<u32> {
        let _ = path;
        None
    }
    /// Whether there is such a file.
    fn exists(&self, path: &Path) -> bool;
    /// What the scheduler says against the file of models that `engine.{key}` names.
    ///
    /// # Errors
    /// Those of [`ebbtide_config::read_model`].
    fn model(&self, key: &'static str, path: &Path) -> Result<(), ConfigError>;
}

/// The files of this machine.
#[derive(Debug, Clone, Copy)]
pub struct ThisMachine {
    mode: Option<u32>,
}

impl ThisMachine {
    /// With the permissions of the file that is judged.
    #[must_use]
    pub fn with(metadata: Option<&Metadata>) -> Self {
        use std::os::unix::fs::PermissionsExt;
        Self {
            mode: metadata.map(|metadata| metadata.permissions().mode()),
        }
    }
}

impl Files for ThisMachine {
    fn mode(&self) -> Option<u32> {
        self.mode
    }

    fn mode_of(&self, path: &Path) -> Option<u32> {
        use std::os::unix::fs::PermissionsExt;
        let metadata = std::fs::metadata(path).ok()?;
        Some(metadata.permissions().mode())
    }

    fn exists(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn model(&self, key: &'static str, path: &Path) -> Result<(), ConfigError> {
        ebbtide_config::read_model(key, path).map(drop)
    }
}

/// Judges a file's text. `path` is for messages and guesses; `kind` is guessed if it is not given.
#[must_use]
pub fn check(path: &Path, text: &str, kind: Option<ConfigKind>, files: &dyn Files) -> CheckReport {
    let (kind, because) = match kind {
        Some(kind) => (kind, "you said so".to_owned()),
        None if has_table(text, "slurm") => return of_another_program(),
        None => guess(path, text),
    };
    let (findings, effective) = match kind {
        ConfigKind::Scheduler => scheduler::check(text, files),
        ConfigKind::Agent => (agent::check(text, files), None),
        ConfigKind::Nova => nova::check(path, text, files),
    };
    let report = CheckReport {
        kind,
        because,
        findings,
        effective,
    };
    report.sorted()
}

/// Whether a TOML table of this name begins anywhere.
fn has_table(text: &str, name: &str) -> bool {
    text.lines().map(str::trim).any(|line| {
        line.strip_prefix('[')
            .and_then(|rest| rest.split([']', '.']).next())
            .is_some_and(|first| first.trim() == name)
    })
}

/// What there is to say of batch.toml: its own program judges it, together with slurm.conf.
fn of_another_program() -> CheckReport {
    let finding = Finding::new(Level::Error, code::UNKNOWN, "slurm")
        .what("this is a file of ebbtide-batch, which is not judged here")
        .why("it has a table slurm, which neither the scheduler nor the agent knows")
        .next("`ebbtide-batch check --config FILE` judges it together with the cluster; docs/tenants/batch.md has its keys");
    CheckReport {
        kind: ConfigKind::Scheduler,
        because: "it has slurm".to_owned(),
        findings: vec![finding],
        effective: None,
    }
}

/// Whose file it is, by its sections and keys, and how that is known.
#[must_use]
pub fn guess(path: &Path, text: &str) -> (ConfigKind, String) {
    let mut seen: Vec<(ConfigKind, Vec<String>)> =
        ConfigKind::ALL.map(|kind| (kind, Vec::new())).to_vec();
    let groups: Vec<&str> = ebbtide_nova::options::declared_names()
        .map(|(group, _)| group)
        .collect();
    let mut at_top = true;
    for line in text.lines().map(str::trim) {
        let section = line
            .trim_start_matches('[')
            .split([']', '.'])
            .next()
            .unwrap_or_default()
            .trim();
        let is_section = line.starts_with('[');
        at_top &= !is_section;
        let name = if is_section {
            section
        } else if at_top {
            line.split(['=', '.', ' ']).next().unwrap_or_default()
        } else {
            continue;
        };
        if name.is_empty() {
            continue;
        }
        for (kind, names) in &mut seen {
            let known = match kind {
                ConfigKind::Nova => {
                    is_section
                        && (groups.contains(&name)
                            || registry::keys(*kind)
                                .iter()
                                .any(|key| key.section() == name))
                }
                _ => registry::keys(*kind)
                    .iter()
                    .any(|key| key.path == name || key.section() == name),
            };
            if known && !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    let conf = path
        .extension()
        .is_some_and(|extension| extension == "conf");
    // Of equals the file's name decides, then the order.
    seen.sort_by_key(|(kind, names)| {
        (
            std::cmp::Reverse(names.len()),
            (*kind == ConfigKind::Nova) != conf,
            *kind,
        )
    });
    let Some((kind, names)) = seen.into_iter().next() else {
        return (ConfigKind::Scheduler, "nothing else is known".to_owned());
    };
    if names.is_empty() {
        // A file of `config sample` in which nothing is set yet.
        let mut kinds = ConfigKind::ALL.into_iter();
        if let Some(kind) = kinds.find(|kind| text.starts_with(&sample::head_line(*kind))) {
            return (kind, "its first line says so".to_owned());
        }
        let kind = if conf {
            ConfigKind::Nova
        } else {
            ConfigKind::Scheduler
        };
        return (kind, "no section of it is known".to_owned());
    }
    let shown: Vec<&str> = names.iter().take(4).map(String::as_str).collect();
    (kind, format!("it has {}", shown.join(", ")))
}
