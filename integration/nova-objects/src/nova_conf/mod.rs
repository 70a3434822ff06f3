//! nova.conf: what the Nova service needs of it, read and checked, and Nova's options for deciding.
//!
//! To add an option of ours, add its declaration to the table in `ebbtide.rs` and a field beside
//! it. Sections that others read by name (Keystone's and the brokers') are handed out as they are,
//! variables replaced.

/// Declares options as constants, and the list of them, `DECLARED`.
macro_rules! options {
    ($($name:ident: $option:expr;)+) => {
        $(const $name: Opt = $option;)+

        /// All of them.
        pub(super) const DECLARED: &[Opt] = &[$($name),+];
    };
}

mod by_name;
mod changes;
mod deciding;
mod ebbtide;
mod machine;
mod not_loaded;
mod sections;

use ebbtide_nova::model::Options;
use ebbtide_nova::release::Release;
use oslo_config::{Config, ConfigError, Opt};
use std::collections::BTreeMap;
use std::fmt;

pub use ebbtide::{EbbtideSection, LogFormat, ReplyWhen};
pub use machine::Machine;
pub use not_loaded::MissingPlugin;
pub use sections::{Database, General, NotificationFormat, Notifications, SchedulerSection};

/// Every option that Ebbtide reads, section by section.
#[must_use]
pub fn options() -> Vec<Opt> {
    let databases = [&API_DATABASE, &DATABASE].map(|options| options.as_slice());
    [ebbtide::DECLARED, sections::DECLARED]
        .into_iter()
        .chain(databases)
        .chain([by_name::OPTIONS, deciding::OPTIONS, deciding::DECLARED])
        .flatten()
        .copied()
        .collect()
}

const API_DATABASE: [Opt; 11] = sections::database("api_database", true);
const DATABASE: [Opt; 11] = sections::database("database", false);

/// A number. One that was left empty is as good as one that was left out.
fn number(config: &Config, option: &Opt) -> oslo_config::Result<i64> {
    let default = option.default.and_then(|default| default.parse().ok());
    Ok(config.int(option)?.or(default).unwrap_or_default())
}

/// A configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NovaConfError {
    /// A file, a line, a value.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Filters or weighers that do not exist here.
    #[error("EB-OBJECT-006: {0}")]
    Loading(Box<MissingPlugin>),
    /// An option that has to be set is not.
    #[error("EB-OBJECT-007: [{group}] {name} of nova.conf is not set: {why}")]
    Unset {
        /// Group.
        group: &'static str,
        /// Name.
        name: &'static str,
        /// What it is for.
        why: &'static str,
    },
}

impl NovaConfError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config(error) => error.code(),
            Self::Loading(_) => "EB-OBJECT-006",
            Self::Unset { .. } => "EB-OBJECT-007",
        }
    }
}

/// A section by name, for readers that know their options themselves. Debug output shows names
/// only.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Section(BTreeMap<String, String>);

impl Section {
    /// The value of an option.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// As a function of the name, which is what `AuthOptions::from_lookup` and the messaging
    /// options take.
    pub fn lookup(&self) -> impl Fn(&str) -> Option<String> + '_ {
        |name| self.get(name)
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// What the Nova service needs of nova.conf.
#[derive(Debug, Clone)]
pub struct NovaConf {
    /// Nova's options for deciding: `[filter_scheduler]`, `[scheduler]`, `[metrics]` and the like,
    /// as the newest release reads them.
    pub options: Options,
    deciding: deciding::DecisionOptions,
    /// Options of `[DEFAULT]`.
    pub general: General,
    /// `[scheduler]`, beyond what [`Self::options`] holds.
    pub scheduler: SchedulerSection,
    /// `[database]`: the cell's database, where our service record goes.
    pub database: Database,
    /// `[api_database]`.
    pub api_database: Database,
    /// `[notifications]` and `[oslo_messaging_notifications]`.
    pub notifications: Notifications,
    /// `[oslo_messaging_rabbit]`.
    pub rabbit: Section,
    /// `[placement]`, with the section that its `auth_section` names below it.
    pub placement: Section,
    /// `[service_user]`.
    pub service_user: Section,
    /// `[keystone]`.
    pub keystone: Section,
    /// `[nova]`: credentials for Nova's own API, if they are given here; the Nova service falls
    /// back on `[placement]`'s.
    pub nova: Section,
    /// `[workarounds]`, beyond what [`Self::options`] holds.
    pub workarounds: Section,
    /// Ours.
    pub ebbtide: EbbtideSection,
    /// What the operator should know: options that have no effect here.
    pub notes: Vec<String>,
    given: changes::GivenValues,
}

impl NovaConf {
    /// Reads and checks. The configuration gets the defaults of the machine.
    ///
    /// # Errors
    /// The first option that is wrong, by name, with its line and what is allowed; filters and
    /// weighers that do not exist.
    pub fn read(config: &mut Config, machine: &Machine) -> Result<Self, NovaConfError> {
        config.declare(&sections::VARIABLES);
        config.set_default("DEFAULT", "host", machine.hostname.as_str());
        config.set_default("DEFAULT", "my_ip", machine.ip.as_str());
        let deciding = deciding::read(config)?;
        let (options, notes) = deciding.options(Release::NEWEST)?;
        Ok(Self {
            options,
            deciding,
            general: General::read(config)?,
            scheduler: SchedulerSection::read(config)?,
            database: Database::read(config, &DATABASE)?,
            api_database: Database::read(config, &API_DATABASE)?,
            notifications: Notifications::read(config)?,
            rabbit: Section(config.section("oslo_messaging_rabbit")?),
            placement: credentials(config, "placement")?,
            service_user: credentials(config, "service_user")?,
            keystone: credentials(config, "keystone")?,
            nova: credentials(config, "nova")?,
            workarounds: Section(config.section("workarounds")?),
            ebbtide: EbbtideSection::read(config)?,
            notes,
            given: changes::GivenValues::of(config),
        })
    }
}

impl NovaConf {
    /// [`Self::options`] as another release reads them, and what the operator should know about
    /// them.
    ///
    /// # Errors
    /// Filters and weighers that do not exist in that release.
    pub fn options_for(&self, release: Release) -> Result<(Options, Vec<String>), NovaConfError> {
        self.deciding.options(release)
    }
}

/// A section of keystoneauth's. Where `auth_section` names another one, the credentials are there,
/// and what is here counts first for the rest.
fn credentials(config: &Config, group: &str) -> Result<Section, ConfigError> {
    let own = config.section(group)?;
    let named = ["auth_section", "auth-section"];
    let other = named.iter().find_map(|name| own.get(*name));
    let Some(other) = other.filter(|other| !other.is_empty()) else {
        return Ok(Section(own));
    };
    let mut section = config.section(other)?;
    section.extend(own);
    Ok(Section(section))
}
