//! Every key: what it is, what it may be, what it does.
//!
//! What is written here cannot be behind the code: a test asks serde for all keys of the types that
//! the programs read, and holds shapes, defaults, examples and ranges against what the programs
//! themselves say.

mod agent;
mod drivers;
mod engine;
mod nova;
mod nova_deciding;
mod scheduler;

use crate::nearest;
use std::fmt;

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

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Text.
    Text,
    /// A file or directory.
    Path,
    /// True or false.
    Switch,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// One of a few words.
    Words(&'static [&'static str]),
    /// A list.
    List,
    /// A table whose keys are the operator's.
    Table,
    /// Text, or a list of it.
    TextOrList,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Path => f.write_str("path"),
            Self::Switch => f.write_str("true or false"),
            Self::Whole => f.write_str("whole number"),
            Self::Number => f.write_str("number"),
            Self::Words(words) => f.write_str(&words.join(", ")),
            Self::List => f.write_str("list"),
            Self::Table => f.write_str("table"),
            Self::TextOrList => f.write_str("text or list"),
        }
    }
}

/// When a changed value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Applies {
    /// At the next start.
    Start,
    /// On SIGHUP, without a restart.
    Sighup,
    /// It is never used: it has no effect on Ebbtide.
    Never,
}

impl Applies {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Sighup => "SIGHUP",
            Self::Never => "never",
        }
    }
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// With dots; `[]` behind a list, `*` for names of the operator's. In nova.conf
    /// `SECTION.OPTION`.
    pub path: &'static str,
    /// What it takes.
    pub ty: Type,
    /// Unit of a number; may be empty.
    pub unit: &'static str,
    /// Written as in the file; empty: not set.
    pub default: &'static str,
    /// The least and the most, of numbers with limits.
    pub range: Option<(f64, f64)>,
    /// True if it has to be there as soon as its table is.
    pub required: bool,
    /// When a change counts.
    pub applies: Applies,
    /// A value, written as in the file.
    pub example: &'static str,
    /// What else has to be in the file for the example and the ends of the range, as TOML.
    pub with: &'static str,
    /// True if the value may be a secret, or holds one.
    pub secret: bool,
    /// What it does.
    pub what: &'static str,
}

impl Key {
    const fn new(
        path: &'static str,
        ty: Type,
        default: &'static str,
        example: &'static str,
        what: &'static str,
    ) -> Self {
        Self {
            path,
            ty,
            unit: "",
            default,
            range: None,
            required: false,
            applies: Applies::Start,
            example,
            with: "",
            secret: false,
            what,
        }
    }

    const fn unit(mut self, unit: &'static str) -> Self {
        self.unit = unit;
        self
    }

    const fn range(mut self, least: f64, most: f64) -> Self {
        self.range = Some((least, most));
        self
    }

    const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    const fn sighup(mut self) -> Self {
        self.applies = Applies::Sighup;
        self
    }

    const fn never(mut self) -> Self {
        self.applies = Applies::Never;
        self
    }

    const fn with(mut self, with: &'static str) -> Self {
        self.with = with;
        self
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// The table or section in which it is: `engine` of `engine.weighers[].name`.
    #[must_use]
    pub fn section(&self) -> &'static str {
        let top = self.path.split('.').next().unwrap_or_default();
        if self.path.contains('.') {
            top.trim_end_matches("[]")
        } else {
            ""
        }
    }

    /// As it is called in a file of its kind.
    #[must_use]
    pub fn shown(&self, kind: ConfigKind) -> String {
        match (kind, self.path.split_once('.')) {
            (ConfigKind::Nova, Some((section, option))) => format!("[{section}] {option}"),
            _ => self.path.to_owned(),
        }
    }

    /// The example as lines of TOML: its table, and the key in it.
    #[must_use]
    pub fn example_in_file(&self) -> String {
        let Some((table, name)) = self.path.rsplit_once('.') else {
            return format!("{} = {}", self.path, self.example);
        };
        let table = table.replace('*', "NAME");
        match table.strip_suffix("[]") {
            Some(list) => format!("[[{list}]]\n{name} = {}", self.example),
            None => format!("[{table}]\n{name} = {}", self.example),
        }
    }

    /// The range, in words; empty where there is none.
    #[must_use]
    pub fn range_shown(&self) -> String {
        match self.range {
            None => String::new(),
            Some((least, f64::INFINITY)) => format!("{least} or more"),
            Some((least, most)) => format!("{least} to {most}"),
        }
    }

    /// The environment variable that sets it; `None` where none can.
    #[must_use]
    pub fn variable(&self, kind: ConfigKind) -> Option<String> {
        if self.path.contains(['[', '*']) {
            return None;
        }
        let upper = self.path.to_uppercase();
        Some(match kind {
            ConfigKind::Scheduler => format!(
                "{}{}",
                ebbtide_config::ENVIRONMENT_PREFIX,
                upper.replace('.', "__")
            ),
            ConfigKind::Agent => format!(
                "{}{}",
                ebbtide_agent::config::ENVIRONMENT_PREFIX,
                upper.replace('.', "__")
            ),
            ConfigKind::Nova => format!("OS_{}", upper.replacen('.', "__", 1)),
        })
    }
}

/// All keys of a kind of file, section by section.
#[must_use]
pub fn keys(kind: ConfigKind) -> Vec<&'static Key> {
    match kind {
        ConfigKind::Scheduler => scheduler::KEYS.iter().chain(engine::KEYS).collect(),
        ConfigKind::Agent => agent::KEYS.iter().chain(drivers::KEYS).collect(),
        ConfigKind::Nova => nova::KEYS.iter().chain(nova_deciding::KEYS).collect(),
    }
}

/// All keys of all kinds.
#[must_use]
pub fn all() -> Vec<(ConfigKind, &'static Key)> {
    let of = |kind| keys(kind).into_iter().map(move |key| (kind, key));
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
        let fits = |(_, key): &&(ConfigKind, &'static Key)| takes(&without_brackets(key.path));
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
            names.push(without_brackets(key.path));
            names.extend(key.path.rsplit('.').next().map(str::to_owned));
            names.push(key.section().to_owned());
        }
    }
    nearest::names(&wanted, names.iter().map(String::as_str))
}
