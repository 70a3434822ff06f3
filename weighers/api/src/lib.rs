//! The weigher contract; that of filters is at [`HostFilter`].
//!
//! A weigher says how good each host is for a request. It gets the request and flat columns over
//! the *n* hosts that passed the filters, and writes one number for each. The engine does the rest,
//! exactly as Nova does (`nova/weights.py`; [`arithmetic`]):
//!
//! 1. it clamps the raw numbers to the weigher's [`Bounds`];
//! 2. it normalises them to 0…1 over the hosts of this request: `(x − lo) / (hi − lo)`, where `lo`
//!    and `hi` are the bounds if there are any, else the smallest and largest number. If `lo == hi`
//!    all become 0;
//! 3. it multiplies each by the weigher's multiplier (configuration, or the metadata of the host's
//!    aggregates) and adds it to the host's total. **Higher totals win.** A weigher whose raw
//!    number is a burden has a negative default multiplier.
//!
//! # What a weigher may rely on
//! - Every column that it [needs](Weigher::needs) is there, has `len` entries, and all of them are
//!   finite.
//! - Hosts keep their index during one call. Their order has no meaning.
//! - Calls come from several threads at once; one call sees one immutable snapshot.
//! - With a single host left the engine calls no weigher: there is nothing to compare.
//!
//! # What a weigher must not do
//! - Keep state between calls, read a clock, do I/O, use random numbers: same input, same output,
//!   bit for bit.
//! - Return NaN or infinities, or fewer numbers than hosts. The engine checks, and by policy
//!   ignores the weigher for this request (and says so in the explanation) or refuses the request.

#![warn(missing_docs)]

pub mod arithmetic;
mod column;
mod decorator;
mod filter;
mod form;

pub use column::Column;
pub use decorator::WeigherDecorator;
pub use ebbtide_model::facts::{Fact, FactColumn, Texts};
pub use filter::{FilterError, FilterFailure, FilterVerdicts, HostFilter};
pub use form::WeigherForm;

use ebbtide_model::{GroupPolicy, Resources};
use thiserror::Error;

/// The preemptible instances of all hosts of a batch, host after host, without those that are
/// leaving.
#[derive(Debug, Clone, Copy)]
pub struct PreemptibleRows<'a> {
    /// Rows of host *i* are `offsets[i]..offsets[i + 1]`; `len + 1` entries.
    pub offsets: &'a [u32],
    /// Running time of each instance, in seconds.
    pub age_seconds: &'a [f64],
}

impl<'a> PreemptibleRows<'a> {
    /// The ages of one host's preemptible instances, in seconds; `None` if the offsets do not
    /// describe that host.
    #[must_use]
    pub fn host(&self, index: usize) -> Option<&'a [f64]> {
        let start = *self.offsets.get(index)? as usize;
        let end = *self.offsets.get(index + 1)? as usize;
        self.age_seconds.get(start..end)
    }
}

/// The value of one metric on a host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricValue {
    /// The host does not report the metric.
    Missing,
    /// The host reports the metric, but without a number.
    Unset,
    /// The number that the host reports.
    Known(f64),
}

/// A metric over all hosts of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricColumn {
    /// Its name, for example `cpu.percent`.
    pub name: String,
    /// One value for each host.
    pub values: Vec<MetricValue>,
}

/// For each host, how many of its instances have the same value of an image property as the
/// request.
#[derive(Debug, Clone, PartialEq)]
pub struct PropertyColumn {
    /// The property, for example `hw_machine_type`.
    pub name: String,
    /// One count for each host.
    pub counts: Vec<f64>,
}

/// Optional columns. The caller fills in only what a weigher of this call reads and the caller
/// knows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Details<'a> {
    /// Metrics that the hosts report.
    pub metrics: &'a [MetricColumn],
    /// Image properties that request and hosts have in common.
    pub image_properties: &'a [PropertyColumn],
    /// The weigher's own multiplier on each host; empty if the caller does not supply it.
    pub multipliers: &'a [f64],
    /// The facts that some weigher of this call [reads](Weigher::facts).
    pub facts: &'a [(Fact, FactColumn)],
}

/// The hosts of one call.
#[derive(Debug, Clone, Copy)]
pub struct HostBatch<'a> {
    /// Number of hosts.
    pub len: usize,
    /// The columns by [`Column::index`]; those that no weigher needs are empty.
    pub columns: &'a [Vec<f64>; Column::COUNT],
    /// The preemptible instances, if the weigher [needs them](Weigher::needs_preemptibles).
    pub preemptibles: Option<PreemptibleRows<'a>>,
    /// Optional columns that few weighers read.
    pub details: Details<'a>,
}

impl<'a> HostBatch<'a> {
    /// One column.
    ///
    /// # Errors
    /// [`WeigherError::MissingColumn`] if the weigher has not declared that it needs it.
    pub fn column(&self, column: Column) -> Result<&'a [f64], WeigherError> {
        let values: &[f64] = &self.columns[column.index()];
        if values.len() == self.len {
            Ok(values)
        } else {
            Err(WeigherError::MissingColumn(column))
        }
    }

    /// Checks the engine's side of the contract: `out` has an entry for each host.
    ///
    /// # Errors
    /// [`WeigherError::Other`] with both lengths.
    pub fn check_room(&self, out: &[f64]) -> Result<(), WeigherError> {
        if out.len() == self.len {
            Ok(())
        } else {
            Err(WeigherError::Other(format!(
                "was called with room for {} numbers and {} hosts; both must be equal",
                out.len(),
                self.len
            )))
        }
    }

    /// One fact.
    ///
    /// # Errors
    /// [`WeigherError::MissingFact`] if the weigher has not declared that it reads it.
    pub fn fact(&self, fact: &Fact) -> Result<&'a FactColumn, WeigherError> {
        let mut known = self.details.facts.iter();
        let found = known.find(|(known, _)| known == fact);
        let (_, column) = found.ok_or_else(|| WeigherError::MissingFact(fact.clone()))?;
        Ok(column)
    }
}

/// The part of the request that weighers see.
#[derive(Debug, Clone, Copy)]
pub struct RequestView<'a> {
    /// The project that makes the request.
    pub project_id: &'a str,
    /// The resources of one instance.
    pub resources: &'a Resources,
    /// True if the instance may be evacuated later.
    pub preemptible: bool,
    /// The policy of the server group that it joins, if any.
    pub group_policy: Option<GroupPolicy>,
    /// Optional data that few weighers read.
    pub details: RequestDetails<'a>,
}

/// Optional data about a request that few weighers read. The caller fills in what it knows.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestDetails<'a> {
    /// The flavor's name.
    pub flavor: &'a str,
    /// The flavor's extra specs, in the order of their keys.
    pub extra_specs: &'a [(&'a str, &'a str)],
    /// The image's identifier.
    pub image_id: Option<&'a str>,
    /// Scheduler hints of Nova's request without Nova's own (`_nova_…`), in the order of their
    /// keys, each with a JSON list of its values.
    pub scheduler_hints: &'a [(&'a str, String)],
}

/// Fixed ends of the scale (Nova's `minval` and `maxval`). Raw numbers beyond are clamped.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Bounds {
    /// The number that becomes 0, if fixed.
    pub min: Option<f64>,
    /// The number that becomes 1, if fixed.
    pub max: Option<f64>,
}

impl Bounds {
    /// Nova's `minval = 0`: raw numbers below zero count as zero, and zero is the lower end of the
    /// scale.
    pub const FROM_ZERO: Self = Self {
        min: Some(0.0),
        max: None,
    };

    /// opie's `maxval = 0`: no burden is the best value and the upper end of the scale, so that the
    /// normalised number is `1 − burden / largest burden`.
    pub const UP_TO_ZERO: Self = Self {
        min: None,
        max: Some(0.0),
    };
}

/// What can go wrong in a weigher.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum WeigherError {
    /// It asked for a column that it had not declared.
    #[error("column {0:?} was not declared in needs()")]
    MissingColumn(Column),
    /// It asked for a fact that it had not declared.
    #[error("the fact {0} was not declared in facts()")]
    MissingFact(Fact),
    /// It asked for the preemptible instances without having declared it.
    #[error("the preemptible instances were not declared in needs_preemptibles()")]
    MissingPreemptibles,
    /// It has neither [`weigh`](Weigher::weigh) of its own nor a [form](Weigher::form).
    #[error("neither weigh() nor form() says what it gives")]
    NoForm,
    /// It wrote a number that is not finite.
    #[error("gave {value} for host number {index}")]
    NotFinite {
        /// Which host of the batch.
        index: usize,
        /// What it gave.
        value: f64,
    },
    /// A metric that the weigher requires is missing.
    #[error("host number {index} does not report the metric {name}")]
    MetricNotFound {
        /// Which host of the batch.
        index: usize,
        /// The metric.
        name: String,
    },
    /// A metric is there but has no number.
    #[error("host number {index} reports the metric {name} without a number")]
    MetricUnset {
        /// Which host of the batch.
        index: usize,
        /// The metric.
        name: String,
    },
    /// Anything else, in its own words.
    #[error("{0}")]
    Other(String),
}

/// A weigher. See the module's text for the contract.
pub trait Weigher: Send + Sync {
    /// Its name in configuration and explanations, for example `ram`.
    fn name(&self) -> &str;

    /// The aggregate metadata key, and Nova's option, of its multiplier, for example
    /// `ram_weight_multiplier`.
    fn multiplier_key(&self) -> &str;

    /// Its multiplier where nothing else is configured.
    fn default_multiplier(&self) -> f64;

    /// A factor for its multiplier, from whatever source: -1 for a burden whose option is a
    /// positive number.
    fn multiplier_sign(&self) -> f64 {
        1.0
    }

    /// Which columns it reads.
    fn needs(&self) -> &[Column];

    /// Which facts it reads.
    fn facts(&self) -> &[Fact] {
        &[]
    }

    /// True if it reads the preemptible instances one by one.
    fn needs_preemptibles(&self) -> bool {
        false
    }

    /// The fixed ends of its scale.
    fn bounds(&self) -> Bounds {
        Bounds::default()
    }

    /// Writes one number for each host into `out`, which has `hosts.len` entries: what its
    /// [`form`](Weigher::form) gives, unless the weigher says otherwise.
    ///
    /// # Errors
    /// Whatever keeps it from answering.
    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        // A constant reads no column, but an engine that forgot one must not go unnoticed.
        for &column in self.needs() {
            hosts.column(column)?;
        }
        self.form(request).write(hosts, out)
    }

    /// The form of its numbers for a request, if known in advance. A weigher with a
    /// [`weigh`](Weigher::weigh) of its own must write exactly what its form gives.
    fn form(&self, request: &RequestView<'_>) -> WeigherForm {
        let _ = request;
        WeigherForm::Opaque
    }
}
