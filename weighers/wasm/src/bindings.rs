//! The types of `wit/plugin.wit` as Rust sees them. What goes in is borrowed, so nothing is copied
//! but into the guest's memory; what comes out is owned.

use ebbtide_plugin_contract::PluginColumn;
use wasmtime::component::{ComponentType, Lift, Lower};

/// A key and its value.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Pair<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: &'a str,
}

/// One text a row.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Texts<'a> {
    pub(crate) codes: &'a [u32],
    pub(crate) texts: &'a [&'a str],
}

/// So many numbers a row.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Groups<'a> {
    pub(crate) offsets: &'a [u32],
    pub(crate) numbers: &'a [f64],
}

/// One value a row.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(variant)]
pub(crate) enum Column<'a> {
    #[component(name = "numbers")]
    Numbers(&'a [f64]),
    #[component(name = "texts")]
    Texts(Texts<'a>),
    #[component(name = "groups")]
    Groups(Groups<'a>),
}

impl<'a> From<PluginColumn<'a>> for Column<'a> {
    fn from(handed: PluginColumn<'a>) -> Self {
        match handed {
            PluginColumn::Numbers(numbers) => Self::Numbers(numbers),
            PluginColumn::Texts { codes, texts } => Self::Texts(Texts { codes, texts }),
            PluginColumn::Groups { offsets, numbers } => Self::Groups(Groups { offsets, numbers }),
        }
    }
}

/// How much of a resource class one instance takes.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Amount<'a> {
    #[component(name = "resource-class")]
    pub(crate) resource_class: &'a str,
    pub(crate) amount: u64,
}

/// Who is to be placed.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Request<'a> {
    #[component(name = "project-id")]
    pub(crate) project_id: &'a str,
    pub(crate) preemptible: bool,
    pub(crate) resources: &'a [Amount<'a>],
    pub(crate) properties: &'a [Pair<'a>],
}

/// The rows of a call: `hosts` of a weigher or a filter, `candidates` of a cost module.
#[derive(Debug, Clone, Copy, ComponentType, Lower)]
#[component(record)]
pub(crate) struct Rows<'a> {
    pub(crate) len: u32,
    pub(crate) columns: &'a [Column<'a>],
}

/// What a weigher says of itself.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct WeigherDescription {
    #[component(name = "default-multiplier")]
    pub(crate) default_multiplier: f64,
    pub(crate) needs: Vec<String>,
    pub(crate) min: Option<f64>,
    pub(crate) max: Option<f64>,
}

/// What a cost module says of itself.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct CostDescription {
    pub(crate) unit: String,
    pub(crate) needs: Vec<String>,
    pub(crate) surcharges: Vec<f64>,
}

/// What a filter says of itself.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct FilterDescription {
    pub(crate) needs: Vec<String>,
}

/// Which hosts pass a filter.
#[derive(Debug, Clone, ComponentType, Lift)]
#[component(record)]
pub(crate) struct Verdicts {
    pub(crate) codes: Vec<u32>,
    pub(crate) reasons: Vec<String>,
}

/// `list<pair>` on its way in.
pub(crate) type Pairs<'a> = &'a [Pair<'a>];
