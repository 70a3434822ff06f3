//! Every key: what it is, what it may be, what it does.
//!
//! Nothing is declared here. A key is declared once, where its program reads it: those of the TOML
//! files by [`ebbtide_model::settings!`], the options of nova.conf as [`oslo_config::Opt`].

mod nova;

use crate::nearest;
use ebbtide_model::settings;
use std::fmt;
use std::sync::LazyLock;

pub use ebbtide_model::settings::{Applies, Key, Type};

/// Whose file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfigKind {
    /// `ebbtide-scheduler --config`, TOML.
    Scheduler,
    /// `ebbtide-agent --config`, TOML.
    Agent,
    /// nova.conf, `ebbtide-scheduler --config-file`, as oslo.config reads it.
    Nova,
}

impl ConfigKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Scheduler, Self::Agent, Self::Nova];

    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Agent => "agent",
            Self::Nova => "nova",
        }
    }

    /// What it is, in a heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Scheduler => "The scheduler's TOML",
            Self::Agent => "The agent's TOML",
            Self::Nova => "nova.conf",
        }
    }
}

impl fmt::Display for ConfigKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the kind of file adds to a key.
pub trait KeyInFile {
    /// As it is called in a file of this kind.
    fn shown(&self, kind: ConfigKind) -> String;

    /// The environment variable that sets it; `None` where none can.
    fn variable(&self, kind: ConfigKind) -> Option<String>;
}

impl KeyInFile for Key {
    fn shown(&self, kind: ConfigKind) -> String {
        match (kind, self.path.split_once('.')) {
            (ConfigKind::Nova, Some((section, option))) => format!("[{section}] {option}"),
            _ => self.path.clone(),
        }
    }

    fn variable(&self, kind: ConfigKind) -> Option<String> {
        if self.path.contains(['[', '*']) {
            return None;
        }
        let upper = self.path.to_uppercase();
        let toml = |prefix| format!("{prefix}{}", upper.replace('.', "__"));
        Some(match kind {
            ConfigKind::Scheduler => toml(ebbtide_config::ENVIRONMENT_PREFIX),
            ConfigKind::Agent => toml(ebbtide_agent::config::ENVIRONMENT_PREFIX),
            ConfigKind::Nova => format!("OS_{}", upper.replacen('.', "__", 1)),
        })
    }
}

static SCHEDULER: LazyLock<Vec<Key>> = LazyLock::new(settings::keys::<ebbtide_config::Config>);
static AGENT: LazyLock<Vec<Key>> = LazyLock::new(settings::keys::<ebbtide_agent::Config>);
static NOVA: LazyLock<Vec<Key>> = LazyLock::new(nova::keys);

/// All keys of a kind of file, section by section.
#[must_use]
pub fn keys(kind: ConfigKind) -> &'static [Key] {
    match kind {
        ConfigKind::Scheduler => &SCHEDULER,
        ConfigKind::Agent => &AGENT,
        ConfigKind::Nova => &NOVA,
    }
}

/// All keys of all kinds.
#[must_use]
pub fn all() -> Vec<(ConfigKind, &'static Key)> {
    let of = |kind| keys(kind).iter().map(move |key| (kind, key));
    ConfigKind::ALL.into_iter().flat_map(of).collect()
}

/// As it was typed, brought to the form of [`Key::path`]: `[section] option`, `plugins[2].file` and
/// `weighers.name` are understood.
fn plain(typed: &str) -> String {
    let typed = typed.trim();
    let typed = match typed
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((section, option)) if !option.trim().is_empty() => {
            format!("{section}.{}", option.trim())
        }
        Some((section, _)) => section.trim_matches(['[', ']']).to_owned(),
        None => typed.to_owned(),
    };
    let mut plain = String::new();
    let mut inside = false;
    for c in typed.chars() {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            c if !inside => plain.push(c),
            _ => {}
        }
    }
    plain.trim_end_matches('.').to_lowercase()
}

fn without_brackets(path: &str) -> String {
    path.replace("[]", "").to_lowercase()
}

/// The keys that are meant: the one of that name, else those below it, else those whose last part
/// it is.
#[must_use]
pub fn find(typed: &str, only: Option<ConfigKind>) -> Vec<(ConfigKind, &'static Key)> {
    let wanted = plain(typed);
    let among: Vec<_> = all()
        .into_iter()
        .filter(|(kind, _)| only.is_none_or(|only| only == *kind))
        .collect();
    let pick = |takes: &dyn Fn(&str) -> bool| -> Vec<(ConfigKind, &'static Key)> {
        let fits = |(_, key): &&(ConfigKind, &'static Key)| takes(&without_brackets(&key.path));
        among.iter().filter(fits).copied().collect()
    };
    let below = format!("{wanted}.");
    let whole = pick(&|path| path == wanted || path.starts_with(&below));
    if !whole.is_empty() {
        return whole;
    }
    let last = format!(".{wanted}");
    pick(&|path| path.ends_with(&last) || path.contains(&format!("{last}.")))
}

/// Known names nearest to one that is not known, best first.
#[must_use]
pub fn near(typed: &str, only: Option<ConfigKind>) -> Vec<String> {
    let wanted = plain(typed);
    let mut names: Vec<String> = Vec::new();
    for (kind, key) in all() {
        if only.is_none_or(|only| only == kind) {
            names.push(without_brackets(&key.path));
            names.extend(key.path.rsplit('.').next().map(str::to_owned));
            names.push(key.section().to_owned());
        }
    }
    nearest::names(&wanted, names.iter().map(String::as_str))
}
