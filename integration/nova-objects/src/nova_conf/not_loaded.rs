//! Filters and weighers that nova.conf names and that are not here: which one, where it is named,
//! and what can be done.

use super::NovaConfError;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::options::{names_filters, names_weighers};
use oslo_config::ValueLocation;
use std::fmt;

/// Filters that Nova itself has no longer: Placement decides what they decided.
const REMOVED: [&str; 11] = [
    "AggregateCoreFilter",
    "AggregateDiskFilter",
    "AggregateRamFilter",
    "AvailabilityZoneFilter",
    "CoreFilter",
    "DiskFilter",
    "ExactCoreFilter",
    "ExactDiskFilter",
    "ExactRamFilter",
    "RamFilter",
    "RetryFilter",
];

/// What can be done about a filter that is not here.
const WITHOUT_FILTER: &str = "take it out, let `ebbtide-nova-weighers --filter {}` serve it as it is, and name the service in the file of \
    [ebbtide] plugins with on_failure = \"refuse\" (docs/plugins/filters.md, \"Nova's filters, unmodified\"), or say the same by traits and \
    aggregates, which Placement checks";

/// What can be done about a weigher that is not here.
const WITHOUT_WEIGHER: &str = "take it out, let `ebbtide-nova-weighers --weigher {}` serve it as it is, and name the service in the file of \
    [ebbtide] plugins (docs/plugins/plugins.md, \"Nova's own weighers, unmodified\")";

/// A filter or a weigher that nova.conf names and that is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPlugin {
    /// Where it is named, where that is known.
    pub place: Option<ValueLocation>,
    /// The option of `[filter_scheduler]` that names it.
    pub option: &'static str,
    /// The name as given.
    pub name: String,
    /// Why it is not here.
    why: String,
    /// What can be done.
    next: String,
}

impl fmt::Display for MissingPlugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(f, "{place}: ")?,
            None => write!(f, "nova.conf: ")?,
        }
        let (option, name) = (self.option, &self.name);
        write!(f, "[filter_scheduler] {option} names {name}: {}", self.why)?;
        match self.next.as_str() {
            "" => Ok(()),
            next => write!(f, "; {next}"),
        }
    }
}

/// An entry of a list.
#[derive(Debug, Clone)]
pub(super) struct ListEntry {
    name: String,
    place: ValueLocation,
}

impl ListEntry {
    /// The entries of an option that is a list.
    pub(super) fn split(text: &str, place: &ValueLocation) -> Vec<Self> {
        let names = text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let entry = |name: &str| Self {
            name: name.to_owned(),
            place: place.clone(),
        };
        names.map(entry).collect()
    }

    /// One value of an option that may come several times.
    pub(super) fn one((name, place): &(String, ValueLocation)) -> Self {
        Self {
            name: name.clone(),
            place: place.clone(),
        }
    }
}

/// The lists of filters and weighers as nova.conf has them.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    pub(super) available: Vec<ListEntry>,
    pub(super) enabled: Vec<ListEntry>,
    pub(super) weighers: Vec<ListEntry>,
}

/// A dotted name outside of Nova's own package, where operators keep classes of theirs.
fn is_foreign(name: &str) -> bool {
    name.contains('.') && name != "nova" && !name.starts_with("nova.")
}

impl Lists {
    /// The error for a fault of loading: Nova's exceptions say little to those who run no Python.
    pub(super) fn explain(&self, fault: &NovaException) -> NovaConfError {
        let found = self
            .unknown_filter()
            .or_else(|| self.not_available(fault))
            .or_else(|| self.unknown_weigher());
        // Something else than a name, for example a list that is empty where Nova walks it.
        let found = found.unwrap_or_else(|| MissingPlugin {
            place: None,
            option: "enabled_filters, available_filters or weight_classes",
            name: "what does not load".to_owned(),
            why: fault.to_string(),
            next: String::new(),
        });
        NovaConfError::Loading(Box::new(found))
    }

    fn unknown_filter(&self) -> Option<MissingPlugin> {
        let entry = self
            .available
            .iter()
            .find(|entry| !names_filters(&entry.name))?;
        let (why, next) = if is_foreign(&entry.name) {
            let why =
                "a Python filter from outside of Nova, and Python filters are not loaded here";
            let enabled = self.is_enabled(&entry.name);
            let next = if enabled {
                WITHOUT_FILTER.replace("{}", &entry.name)
            } else {
                "enabled_filters does not name it, so it decides nothing: take the line out"
                    .to_owned()
            };
            (why.to_owned(), next)
        } else {
            let why = "Nova has no such filter".to_owned();
            (
                why,
                "correct the name; nova.scheduler.filters.all_filters stands for all of Nova's"
                    .to_owned(),
            )
        };
        Some(entry.not_loaded("available_filters", why, next))
    }

    /// Whether a filter runs, by the last part of its dotted name. One that is no class may stand
    /// for any that Nova has not.
    fn is_enabled(&self, dotted: &str) -> bool {
        let class = dotted.rsplit('.').next().unwrap_or(dotted);
        let novas = |entry: &ListEntry| ebbtide_nova::filters::by_name(&entry.name).is_some();
        let mut enabled = self.enabled.iter();
        enabled.any(|entry| entry.name == class || !novas(entry))
    }

    fn not_available(&self, fault: &NovaException) -> Option<MissingPlugin> {
        let missing = (fault.class == "SchedulerHostFilterNotFound").then_some(&fault.message)?;
        let missing = missing.split(',').map(str::trim).next()?;
        let entry = self.enabled.iter().find(|entry| entry.name == missing)?;
        let (why, next) = if REMOVED.contains(&missing) {
            let why = "Nova has this filter no longer, because Placement checks what it checked";
            (why, "take it out".to_owned())
        } else if ebbtide_nova::filters::by_name(missing).is_some() {
            let why = "available_filters does not list it";
            (
                why,
                "add available_filters = nova.scheduler.filters.all_filters".to_owned(),
            )
        } else {
            let why = "none of Nova's filters, and Python filters from outside of Nova are not loaded here";
            let class = format!("MODULE.{missing}");
            (why, WITHOUT_FILTER.replace("{}", &class))
        };
        Some(entry.not_loaded("enabled_filters", why.to_owned(), next))
    }

    fn unknown_weigher(&self) -> Option<MissingPlugin> {
        let entry = self
            .weighers
            .iter()
            .find(|entry| !names_weighers(&entry.name))?;
        let (why, next) = if is_foreign(&entry.name) {
            let why = "a Python weigher from outside of Nova, and Python weighers are not loaded into the scheduler";
            (why, WITHOUT_WEIGHER.replace("{}", &entry.name))
        } else {
            let next =
                "correct the name; nova.scheduler.weights.all_weighers stands for all of Nova's";
            ("Nova has no such weigher", next.to_owned())
        };
        Some(entry.not_loaded("weight_classes", why.to_owned(), next))
    }
}

impl ListEntry {
    fn not_loaded(&self, option: &'static str, why: String, next: String) -> MissingPlugin {
        MissingPlugin {
            place: Some(self.place.clone()),
            option,
            name: self.name.clone(),
            why,
            next,
        }
    }
}
