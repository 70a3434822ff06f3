//! How good the hosts are that passed (`nova/weights.py`, `nova/scheduler/weights`).
//!
//! The arithmetic and the 13 weighers are those of the engine, behind the same contract; here they
//! get Nova's host states, Nova's options and Nova's names, and fail as Nova's do.

mod columns;
mod facts;
mod multiplier;
mod registry;

use crate::fault::NovaException;
use crate::filters::PreemptibleHold;
use crate::model::{HostState, Options, RequestSpec};
use ebbtide_model::GroupPolicy;
use ebbtide_weigher_api::{
    Column, Details, FilterVerdicts, HostBatch, HostFilter, MetricColumn, MetricValue,
    PreemptibleRows, RequestDetails, RequestView, Weigher, WeigherError, arithmetic,
};

pub use crate::plugins::{NovaWeigher, Plugins};
pub use multiplier::MultiplierSource;
pub use registry::{by_class, classes};

/// What one weigher gave to all hosts, parallel to the hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct WeigherResult {
    /// Nova's class name.
    pub class: &'static str,
    /// After clamping.
    pub raw: Vec<f64>,
    /// Normalised.
    pub norm: Vec<f64>,
    /// Multipliers.
    pub mult: Vec<f64>,
    /// Their product.
    pub weighted: Vec<f64>,
}

/// Hosts with their weights.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WeighedHosts {
    /// Parallel to the hosts.
    pub totals: Vec<f64>,
    /// Places in the list of hosts, best first.
    pub order: Vec<usize>,
    /// What each weigher gave, in the order in which they add up; empty for a single host.
    pub parts: Vec<WeigherResult>,
}

/// What makes weighing fail the whole request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeighFault {
    /// Nova's class name of the weigher that raised; `None` if it was the multiplication with a
    /// multiplier that is null.
    pub weigher: Option<&'static str>,
    /// What it raised.
    pub fault: NovaException,
}

/// Weighs hosts against each other. A single host is not weighed: no weigher runs, so none can
/// fail, and its total is 0.
///
/// # Errors
/// What a weigher raises: TypeError for a column that is NULL, ComputeHostMetricNotFound for a
/// metric that is missing, and so on.
pub fn weigh(
    hosts: &[&HostState],
    spec: &RequestSpec,
    options: &Options,
) -> Result<WeighedHosts, WeighFault> {
    let mut totals = vec![0.0; hosts.len()];
    let mut parts = Vec::new();
    if hosts.len() > 1 {
        for class in &options.weighers {
            let Some(weigher) = by_class(class, options) else {
                continue;
            };
            let part = part(&weigher, hosts, spec, options).map_err(|raised| match raised {
                WeighingFailure::Weigher(fault) => WeighFault {
                    weigher: Some(weigher.class),
                    fault,
                },
                WeighingFailure::Multiplication => WeighFault {
                    weigher: None,
                    fault: NovaException::new("TypeError", "a multiplier is null"),
                },
            })?;
            for (total, weighted) in totals.iter_mut().zip(&part.weighted) {
                *total += weighted;
            }
            parts.push(part);
        }
    }
    Ok(WeighedHosts {
        order: best_first(&totals),
        totals,
        parts,
    })
}

/// How weighing fails.
pub(crate) enum WeighingFailure {
    Weigher(NovaException),
    /// Behind it, where its number is multiplied with null.
    Multiplication,
}

impl From<NovaException> for WeighingFailure {
    fn from(fault: NovaException) -> Self {
        Self::Weigher(fault)
    }
}

/// What one weigher gives to hosts.
///
/// # Errors
/// What it raises.
pub(crate) fn part(
    nova: &NovaWeigher,
    hosts: &[&HostState],
    spec: &RequestSpec,
    options: &Options,
) -> Result<WeigherResult, WeighingFailure> {
    let weigher = nova.weigher.as_ref();
    let columns = columns::fill(weigher.needs(), hosts, spec)?;
    let source = MultiplierSource::new(weigher, nova.configured);
    let own: Vec<Option<f64>> = hosts.iter().map(|host| source.of(host)).collect();
    let null = own.iter().any(Option::is_none);
    let mult: Vec<f64> = own.iter().map(|own| own.unwrap_or(f64::NAN)).collect();
    let metrics = if nova.class == registry::METRICS {
        columns::metrics(hosts, options)
    } else {
        Vec::new()
    };
    let image_properties = if nova.class == registry::IMAGE_PROPERTIES {
        columns::image_properties(hosts, spec, options)?
    } else {
        Vec::new()
    };
    let is_ours = is_plugin(nova.class);
    let facts = facts::fill(weigher.facts(), hosts, options);
    let question = match is_ours {
        true => Question::of(spec),
        false => Question::default(),
    };
    let request = question.view(spec, columns::soft_policy(spec));
    let offsets = no_preemptibles(hosts);
    let details = Details {
        metrics: &metrics,
        image_properties: &image_properties,
        multipliers: &mult,
        facts: &facts,
    };
    let batch = batch(hosts, &columns, &offsets, details);
    let mut raw = vec![0.0; hosts.len()];
    weigher
        .weigh(&request, &batch, &mut raw)
        .map_err(|error| raised(&error))?;
    if null {
        return Err(nothing_times(nova.class, &own, &metrics, options));
    }
    arithmetic::clamp(&mut raw, weigher.bounds());
    let mut norm = raw.clone();
    arithmetic::normalise(&mut norm, weigher.bounds());
    let weighted = mult.iter().zip(&norm).map(|(m, n)| m * n).collect();
    Ok(WeigherResult {
        class: nova.class,
        raw,
        norm,
        mult,
        weighted,
    })
}

/// What a filter that is a plugin says of hosts. `hidden`: what the filter does not see of each
/// host, because h_n does not have it; empty: nothing is hidden.
///
/// # Errors
/// The failure in words.
pub(crate) fn verdicts(
    filter: &dyn HostFilter,
    hosts: &[&HostState],
    hidden: &[PreemptibleHold],
    spec: &RequestSpec,
    options: &Options,
) -> Result<FilterVerdicts, String> {
    let columns = columns::fill(filter.needs(), hosts, spec);
    let mut columns = columns.map_err(|fault| fault.to_string())?;
    if filter.needs().contains(&Column::GroupMembers) {
        // Filters have to do with hard policies, too.
        columns[Column::GroupMembers.index()] = columns::members(hosts, spec);
    }
    let mut facts = facts::fill(filter.facts(), hosts, options);
    columns::hide(&mut columns, hidden);
    facts::hide(&mut facts, hidden);
    let question = Question::of(spec);
    let request = question.view(spec, columns::policy(spec));
    let offsets = no_preemptibles(hosts);
    let details = Details {
        facts: &facts,
        ..Details::default()
    };
    let batch = batch(hosts, &columns, &offsets, details);
    let answered = filter.filter(&request, &batch);
    let checked = answered.and_then(|verdicts| verdicts.check(hosts.len()).map(|()| verdicts));
    checked.map_err(|error| error.to_string())
}

/// What a plugin is told of a request beside what Nova's own weighers read. The default is what
/// Nova's own weighers get.
#[derive(Default)]
struct Question<'a> {
    resources: ebbtide_model::Resources,
    preemptible: bool,
    extra_specs: Vec<(&'a str, &'a str)>,
    hints: Vec<(&'a str, String)>,
}

impl<'a> Question<'a> {
    fn of(spec: &'a RequestSpec) -> Self {
        Self {
            resources: facts::resources(spec),
            preemptible: spec.flavor.is_preemptible(),
            extra_specs: extra_specs(spec),
            hints: scheduler_hints(spec),
        }
    }

    fn view(&'a self, spec: &'a RequestSpec, policy: Option<GroupPolicy>) -> RequestView<'a> {
        RequestView {
            project_id: spec.project_id.as_deref().unwrap_or_default(),
            resources: &self.resources,
            preemptible: self.preemptible,
            group_policy: policy,
            details: RequestDetails {
                flavor: &spec.flavor.name,
                extra_specs: &self.extra_specs,
                image_id: spec.image.as_ref().and_then(|image| image.id.as_deref()),
                scheduler_hints: &self.hints,
            },
        }
    }
}

/// The offsets of [`PreemptibleRows`] without a row: Nova's hosts do not tell which of their
/// instances are preemptible.
fn no_preemptibles(hosts: &[&HostState]) -> Vec<u32> {
    vec![0; hosts.len() + 1]
}

fn batch<'a>(
    hosts: &[&HostState],
    columns: &'a [Vec<f64>; Column::COUNT],
    offsets: &'a [u32],
    details: Details<'a>,
) -> HostBatch<'a> {
    HostBatch {
        len: hosts.len(),
        columns,
        preemptibles: Some(PreemptibleRows {
            offsets,
            age_seconds: &[],
        }),
        details,
    }
}

/// True for a weigher that is one of Nova's.
pub(crate) fn is_novas(class: &str) -> bool {
    !is_plugin(class)
}

/// True for a weigher that is none of Nova's.
fn is_plugin(class: &str) -> bool {
    !classes().contains(&class)
}

fn extra_specs(spec: &RequestSpec) -> Vec<(&str, &str)> {
    let specs = spec.flavor.extra_specs.iter();
    let mut specs: Vec<(&str, &str)> = specs
        .flat_map(|specs| specs.iter())
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    specs.sort_unstable();
    specs
}

/// The hints of the request's owner, each with a JSON list of its values.
fn scheduler_hints(spec: &RequestSpec) -> Vec<(&str, String)> {
    let hints = spec.scheduler_hints.iter().flatten();
    let own = hints.filter(|(key, _)| !key.starts_with("_nova_"));
    own.map(|(key, values)| (key.as_str(), serde_json::json!(values).to_string()))
        .collect()
}

/// The first weigher that raises by itself. If a multiplication raised, the oracle names this
/// weigher.
#[must_use]
pub fn first_to_raise(
    hosts: &[&HostState],
    spec: &RequestSpec,
    options: &Options,
) -> Option<&'static str> {
    let known = options
        .weighers
        .iter()
        .filter_map(|class| by_class(class, options));
    known.into_iter().find_map(|weigher| {
        let part = part(&weigher, hosts, spec, options);
        matches!(part, Err(WeighingFailure::Weigher(_))).then_some(weigher.class)
    })
}

/// Where null as a multiplier is noticed: BuildFailureWeigher turns it round, MetricsWeigher looks
/// whether it is 0 on a host that lacks a metric; the others leave it to the multiplication.
fn nothing_times(
    class: &str,
    own: &[Option<f64>],
    metrics: &[MetricColumn],
    options: &Options,
) -> WeighingFailure {
    let lacks = |at: usize| {
        let missing = |column: &MetricColumn| column.values.get(at) == Some(&MetricValue::Missing);
        !options.metrics_required && metrics.iter().any(missing)
    };
    let noticed = match class {
        registry::BUILD_FAILURE => true,
        registry::METRICS => own
            .iter()
            .enumerate()
            .any(|(at, own)| own.is_none() && lacks(at)),
        _ => false,
    };
    if noticed {
        WeighingFailure::Weigher(NovaException::new("TypeError", "the multiplier is null"))
    } else {
        WeighingFailure::Multiplication
    }
}

/// What a weigher of group members says of all hosts, given how many members each has.
///
/// # Errors
/// What the weigher reports, which is nothing that Nova would raise.
pub(crate) fn of_members(
    weigher: &dyn Weigher,
    members: Vec<f64>,
    spec: &RequestSpec,
) -> Result<Vec<f64>, WeigherError> {
    let mut raw = vec![0.0; members.len()];
    let mut columns: [Vec<f64>; Column::COUNT] = Default::default();
    columns[Column::GroupMembers.index()] = members;
    let resources = ebbtide_model::Resources::new();
    let request = RequestView {
        project_id: spec.project_id.as_deref().unwrap_or_default(),
        resources: &resources,
        preemptible: false,
        group_policy: columns::soft_policy(spec),
        details: RequestDetails::default(),
    };
    let batch = HostBatch {
        len: raw.len(),
        columns: &columns,
        preemptibles: None,
        details: Details::default(),
    };
    weigher.weigh(&request, &batch, &mut raw)?;
    Ok(raw)
}

/// Whether what a weigher says of a host can be different from request to request.
pub(crate) fn hangs_on_request(class: &str) -> bool {
    // The inputs of the operator's weighers are unknown.
    is_plugin(class)
        || matches!(
            class,
            "ServerGroupSoftAffinityWeigher"
                | "ServerGroupSoftAntiAffinityWeigher"
                | "CrossCellWeigher"
                | registry::IMAGE_PROPERTIES
        )
}

/// Whether such a weigher surely gives all hosts the same for this request.
pub(crate) fn says_nothing(class: &str, spec: &RequestSpec, options: &Options) -> bool {
    match class {
        "ServerGroupSoftAffinityWeigher" | "ServerGroupSoftAntiAffinityWeigher" => {
            columns::soft_policy(spec).is_none()
        }
        "CrossCellWeigher" => !columns::prefers_a_cell(spec),
        registry::IMAGE_PROPERTIES => options.image_props_weight_multiplier == Some(0.0),
        _ => false,
    }
}

/// Under which class Nova raises what one of our weighers reports.
fn raised(error: &WeigherError) -> NovaException {
    let class = match error {
        WeigherError::MetricNotFound { .. } => "ComputeHostMetricNotFound",
        WeigherError::MetricUnset { .. } => "NotImplementedError",
        _ => "TypeError",
    };
    NovaException::new(class, error.to_string())
}

/// Places by falling totals; equal ones keep their order. Where a total is NaN Nova's order is
/// whatever Python's sort makes of it; here NaN comes last.
#[must_use]
pub fn best_first(totals: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..totals.len()).collect();
    order.sort_by(|&a, &b| arithmetic::best_first(totals[a], totals[b]));
    order
}

/// Which hosts chance may put first (`SchedulerManager._get_sorted_hosts`): the best by
/// `host_subset_size`, after those with the best weight were shuffled if
/// `shuffle_best_same_weighed_hosts` says so. Ascending places.
#[must_use]
pub fn choosable(weighed: &WeighedHosts, options: &Options) -> Vec<usize> {
    let order = &weighed.order;
    let Some(first) = order.first() else {
        return Vec::new();
    };
    let subset = usize::try_from(options.host_subset_size).unwrap_or(0);
    let take = |n: usize| order.iter().take(n).copied().collect::<Vec<usize>>();
    let mut chosen = take(subset);
    if options.shuffle_best_same_weighed_hosts {
        let best = weighed.totals[*first];
        let same: Vec<usize> = order
            .iter()
            .copied()
            .filter(|place| weighed.totals[*place] == best)
            .collect();
        // More best hosts than may be chosen from: any of them may come to the front. NaN is not
        // even equal to itself.
        if subset <= same.len() && !same.is_empty() {
            chosen = same;
        } else {
            let rest = &order[same.len()..];
            chosen = same
                .iter()
                .chain(rest.iter().take(subset - same.len()))
                .copied()
                .collect();
        }
    }
    chosen.sort_unstable();
    chosen
}
