//! The four tables of the preemptible-scheduler paper, run through the engine.
//!
//! Source: López García et al., *An efficient cloud scheduler design supporting preemptible
//! instances*, FGCS 2019 (arXiv:1812.10668), tables 3 to 6: four full hosts, a normal request, and
//! the victims that the paper marks. All four agree if hosts are ranked by the cost of their
//! cheapest sufficient victim set (section 4.4.2). Algorithm 4 as it is printed, the sum over all
//! preemptible instances of a host, contradicts the two tables with mixed sizes; the weigher
//! `partial_hour_sum` is kept to show that.

use crate::{
    Budgets, Engine, EngineConfig, EngineError, HostTable, Instance, InstancePhase, RankingPolicy,
    WeigherConfig,
};
use ebbtide_model::{
    Decision, DecisionId, DecisionOutcome, Flavor, FlavorId, Host, Inventory, Money,
    PlacementRequest, ResourceClass, ServerId, Timestamp,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use uuid::Uuid;

/// The vectors, as a file of the project.
const VECTORS: &str = include_str!("../vectors/003_tables.json");
/// The moment at which the tables are looked at; ages count back from here.
const NOW_MILLIS: i64 = 1_770_000_000_000;
const MINUTE_MILLIS: i64 = 60_000;

/// One instance of a table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PaperInstance {
    /// Its name in the paper, for example `AP1`.
    pub id: String,
    /// How long it has been running, in minutes.
    pub minutes: u32,
    /// Its size: `S`, `M` or `L`.
    pub size: String,
}

/// A sufficient and minimal set of victims: without any one of them it is not sufficient.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct CandidateSet {
    /// The victims, by name.
    pub victims: Vec<String>,
    /// The sum of the minutes that each has used of its started hour.
    pub cost_minutes: f64,
}

/// One host of a table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PaperHost {
    pub name: String,
    /// Its normal instances.
    pub normal: Vec<PaperInstance>,
    /// Its preemptible instances.
    pub preemptible: Vec<PaperInstance>,
    /// Its candidate sets, computed independently of this engine, cheapest first.
    pub candidate_sets: Vec<CandidateSet>,
}

/// What another way of ranking chooses.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct OtherChoice {
    pub host: String,
    /// The cheapest victims there.
    pub victims: Vec<String>,
    /// Its weights by host, where they are known.
    #[serde(default)]
    pub weights: BTreeMap<String, f64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PaperTable {
    /// A short name.
    pub id: String,
    pub title: String,
    /// The size of the normal request.
    pub request: String,
    /// The host that the paper chooses.
    pub expected_host: String,
    /// The victims that the paper marks.
    pub expected_victims: Vec<String>,
    /// What Algorithm 4 as printed chooses.
    pub literal_algorithm_4: OtherChoice,
    /// What the authors' prototype chooses with its two weighers.
    pub opie: OtherChoice,
    /// The four hosts.
    pub hosts: Vec<PaperHost>,
}

#[derive(Deserialize)]
struct Size {
    vcpus: u32,
    ram_mb: u32,
    disk_gb: u32,
}

#[derive(Deserialize)]
struct Vectors {
    host: Size,
    flavors: BTreeMap<String, Size>,
    tables: Vec<PaperTable>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PaperHostResult {
    /// The host as it is in the table.
    pub host: PaperHost,
    /// Free VCPUs while all instances count (h_f).
    pub free_full: i64,
    /// Free VCPUs if only normal instances counted (h_n).
    pub free_normal: i64,
    /// Why a filter dropped it; `None` if it passed all.
    pub dropped: Option<String>,
    /// All its candidate sets, found by trying every set; cheapest first. Empty if it was dropped.
    pub candidate_sets: Vec<CandidateSet>,
    /// The cost of the set that the engine found, in minutes; `None` if it was not needed to
    /// decide.
    pub engine_cost_minutes: Option<f64>,
}

/// What the engine makes of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct PaperResult {
    /// The table's title.
    pub title: String,
    pub hosts: Vec<PaperHostResult>,
    /// The chosen host; empty if none was found.
    pub host: String,
    /// The chosen victims, by name.
    pub victims: Vec<String>,
    /// What they cost, in minutes.
    pub cost_minutes: f64,
    /// True if host and victims are those of the paper.
    pub agrees: bool,
    /// The whole decision, with its explanation.
    pub decision: Decision,
}

/// The tables, in the paper's order.
#[must_use]
pub fn tables() -> Vec<PaperTable> {
    // The file is part of the program; a test makes sure that it can be read.
    vectors().map(|v| v.tables).unwrap_or_default()
}

/// Runs a table with the policy `tiered` and the cost module `partial_hour`: the reading that
/// agrees with the paper.
///
/// # Errors
/// Only if the engine refuses its own defaults or the vectors.
pub fn run(table: &PaperTable) -> Result<PaperResult, EngineError> {
    run_with(table, EngineConfig::default())
}

/// A configuration in which one ranker of the paper, or of its prototype, decides alone, under the
/// policy `nova`.
#[must_use]
pub fn ranked_by(weighers: &[&str]) -> EngineConfig {
    EngineConfig {
        policy: RankingPolicy::Nova,
        weighers: weighers
            .iter()
            .map(|name| WeigherConfig::named(name))
            .collect(),
        ..EngineConfig::default()
    }
}

/// Runs a table with any configuration.
///
/// # Errors
/// A bad configuration.
pub fn run_with(table: &PaperTable, config: EngineConfig) -> Result<PaperResult, EngineError> {
    let vectors = vectors()?;
    let engine = Engine::new(config)?;
    let (hosts, request) = cloud(&vectors, table)?;
    let id = DecisionId(Uuid::from_u128(1));
    let now = Timestamp::from_millis(NOW_MILLIS);
    let decision = engine.decide(&hosts, &Budgets::unlimited(), &request, now, 0, id)?;
    let (host, mut victims, cost) = match &decision.outcome {
        DecisionOutcome::Placed(placements) => {
            placements.first().map_or_else(Default::default, |p| {
                let names = p.victims.iter().map(|v| v.name.clone()).collect::<Vec<_>>();
                (
                    p.host.clone(),
                    names,
                    p.victims.iter().map(|v| v.cost).sum::<f64>(),
                )
            })
        }
        DecisionOutcome::NoValidHost(_) => Default::default(),
    };
    victims.sort();
    let mut expected = table.expected_victims.clone();
    expected.sort();
    let agrees = host == table.expected_host && victims == expected;
    let results = table
        .hosts
        .iter()
        .map(|h| host_result(&vectors, table, &hosts, h, &decision));
    Ok(PaperResult {
        title: table.title.clone(),
        hosts: results.collect(),
        host,
        victims,
        cost_minutes: cost / 60.0,
        agrees,
        decision,
    })
}

fn vectors() -> Result<Vectors, EngineError> {
    serde_json::from_str(VECTORS)
        .map_err(|e| EngineError::Internal(format!("vectors of the paper: {e}")))
}

/// Sizes by the first letter, as the tables write them.
fn size<'a>(vectors: &'a Vectors, letter: &str) -> Result<(&'a str, &'a Size), EngineError> {
    let letter = letter.to_lowercase();
    vectors
        .flavors
        .iter()
        .find(|(name, _)| name.starts_with(&letter))
        .map(|(name, size)| (name.as_str(), size))
        .ok_or_else(|| EngineError::Internal(format!("vectors of the paper: size {letter:?}")))
}

fn flavor(vectors: &Vectors, letter: &str) -> Result<Flavor, EngineError> {
    let (name, size) = size(vectors, letter)?;
    Ok(Flavor {
        id: FlavorId(Uuid::from_u128(u128::from(size.vcpus))),
        name: name.to_owned(),
        vcpus: size.vcpus,
        ram_mb: size.ram_mb,
        disk_gb: size.disk_gb,
        extra_specs: BTreeMap::new(),
    })
}

/// The table's hosts and instances, and its request.
fn cloud(
    vectors: &Vectors,
    table: &PaperTable,
) -> Result<(HostTable, PlacementRequest), EngineError> {
    let mut hosts = HostTable::new();
    let mut number = 0;
    for (position, paper) in table.hosts.iter().enumerate() {
        let of = |amount: u32| Inventory::of(u64::from(amount));
        hosts.put_host(&Host {
            name: paper.name.clone(),
            inventory: BTreeMap::from([
                (ResourceClass::vcpu(), of(vectors.host.vcpus)),
                (ResourceClass::memory_mb(), of(vectors.host.ram_mb)),
                (ResourceClass::disk_gb(), of(vectors.host.disk_gb)),
            ]),
            traits: Default::default(),
            disabled_reason: None,
            reclaim: None,
            agent_session: None,
            removed_at: None,
            last_seen: None,
            storage: None,
            created_at: Timestamp::from_millis(i64::try_from(position).unwrap_or(0)),
        });
        let normal = paper.normal.iter().map(|i| (i, false));
        for (instance, preemptible) in normal.chain(paper.preemptible.iter().map(|i| (i, true))) {
            number += 1;
            let launched = NOW_MILLIS - i64::from(instance.minutes) * MINUTE_MILLIS;
            hosts.put_instance(&Instance {
                id: ServerId(Uuid::from_u128(number)),
                name: instance.id.clone(),
                project_id: "paper".to_owned(),
                host: paper.name.clone(),
                resources: flavor(vectors, &instance.size)?.properties()?.resources,
                retained: ebbtide_model::Resources::new(),
                preemptible,
                group_id: None,
                launched_at: Some(Timestamp::from_millis(launched)),
                protected_until: None,
                price_per_hour: Money::default(),
                max_price: Money::default(),
                flavor: String::new(),
                ends_at: None,
                priority: 0,
                phase: InstancePhase::Running,
            })?;
        }
    }
    let request = PlacementRequest {
        server_ids: vec![ServerId(Uuid::from_u128(1_000_000))],
        project_id: "paper".to_owned(),
        flavor: flavor(vectors, &table.request)?,
        availability_zone: None,
        group_id: None,
        ignore_hosts: Vec::new(),
        force_hosts: Vec::new(),
        alternates: 0,
    };
    Ok((hosts, request))
}

fn host_result(
    vectors: &Vectors,
    table: &PaperTable,
    hosts: &HostTable,
    paper: &PaperHost,
    decision: &Decision,
) -> PaperHostResult {
    let usage = hosts.usage(&paper.name);
    let vcpus = usage
        .iter()
        .flat_map(|u| &u.classes)
        .find(|c| c.class == ResourceClass::vcpu());
    let (free_full, free_normal) = vcpus.map_or((0, 0), |c| (c.free_full, c.free_normal));
    let explained = decision.explanation.instances.first();
    let dropped = explained
        .iter()
        .flat_map(|e| &e.filters)
        .flat_map(|f| &f.dropped)
        .find(|d| d.host == paper.name)
        .map(|d| d.reason.clone());
    let ranked = explained
        .iter()
        .flat_map(|e| &e.ranking)
        .find(|r| r.host == paper.name);
    let wanted = size(vectors, &table.request).map_or(0, |(_, size)| i64::from(size.vcpus));
    let sets = if dropped.is_none() {
        candidate_sets(vectors, paper, wanted - free_full)
    } else {
        Vec::new()
    };
    PaperHostResult {
        host: paper.clone(),
        free_full,
        free_normal,
        dropped,
        candidate_sets: sets,
        engine_cost_minutes: ranked
            .and_then(|r| r.eviction_cost)
            .map(|seconds| seconds / 60.0),
    }
}

/// All minimal sets that free at least `missing` VCPUs, found by enumeration: a host of the tables
/// has at most four preemptible instances. VCPUs alone decide, because memory and disk are in the
/// same proportion in all tables.
fn candidate_sets(vectors: &Vectors, paper: &PaperHost, missing: i64) -> Vec<CandidateSet> {
    let vcpus =
        |i: &PaperInstance| size(vectors, &i.size).map_or(0, |(_, size)| i64::from(size.vcpus));
    let members = &paper.preemptible;
    let mut sets: Vec<CandidateSet> = (1_u32..1 << members.len())
        .map(|mask| {
            let in_set = |(at, _): &(usize, &PaperInstance)| mask & (1 << at) != 0;
            members
                .iter()
                .enumerate()
                .filter(in_set)
                .map(|(_, i)| i)
                .collect::<Vec<_>>()
        })
        .filter(|set| {
            let freed: i64 = set.iter().map(|i| vcpus(i)).sum();
            freed >= missing && set.iter().all(|i| freed - vcpus(i) < missing)
        })
        .map(|set| CandidateSet {
            victims: set.iter().map(|i| i.id.clone()).collect(),
            cost_minutes: set.iter().map(|i| f64::from(i.minutes % 60)).sum(),
        })
        .collect();
    sets.sort_by(|a, b| {
        a.cost_minutes
            .total_cmp(&b.cost_minutes)
            .then_with(|| a.victims.cmp(&b.victims))
    });
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_four_tables_agree_with_the_paper() {
        let tables = tables();
        assert_eq!(tables.len(), 4);
        for table in &tables {
            let result = run(table).unwrap();
            assert!(
                result.agrees,
                "{}: {} {:?}",
                table.id, result.host, result.victims
            );
            assert!(result.decision.explanation.optimal);
            assert_eq!(result.decision.explanation.warnings, [""; 0]);
        }
    }

    #[test]
    fn candidate_sets_and_costs_are_those_of_the_independent_prototype() {
        for table in &tables() {
            for host in run(table).unwrap().hosts {
                let mut known = host.host.candidate_sets.clone();
                known.sort_by(|a, b| {
                    a.cost_minutes
                        .total_cmp(&b.cost_minutes)
                        .then_with(|| a.victims.cmp(&b.victims))
                });
                assert_eq!(
                    host.candidate_sets, known,
                    "{} {}",
                    table.id, host.host.name
                );
                let cheapest = host.candidate_sets.first().map(|set| set.cost_minutes);
                assert_eq!(
                    host.engine_cost_minutes, cheapest,
                    "{} {}",
                    table.id, host.host.name
                );
            }
        }
    }

    #[test]
    fn the_literal_algorithm_4_contradicts_the_tables_with_mixed_sizes() {
        for table in &tables() {
            let result = run_with(table, ranked_by(&["partial_hour_sum"])).unwrap();
            let literal = &table.literal_algorithm_4;
            assert_eq!(
                (&result.host, &result.victims),
                (&literal.host, &literal.victims)
            );
            assert_eq!(result.agrees, !table.id.contains("mixed"), "{}", table.id);
        }
    }

    #[test]
    fn the_weights_of_the_authors_prototype_are_reproduced() {
        for table in &tables() {
            let weighers = ["partial_hour_sum", "preemptible_count"];
            let result = run_with(table, ranked_by(&weighers)).unwrap();
            assert_eq!(
                (&result.host, &result.victims),
                (&table.opie.host, &table.opie.victims)
            );
            let ranking = &result.decision.explanation.instances[0].ranking;
            assert_eq!(ranking.len(), table.opie.weights.len());
            for ranked in ranking {
                let expected = table.opie.weights[&ranked.host];
                let difference = (ranked.weight - expected).abs();
                assert!(
                    difference < 0.0005,
                    "{} {}: {}",
                    table.id,
                    ranked.host,
                    ranked.weight
                );
            }
        }
    }

    #[test]
    fn eviction_cost_as_a_weigher_agrees_with_the_paper_too() {
        for table in &tables() {
            let result = run_with(table, ranked_by(&["eviction_cost"])).unwrap();
            assert!(result.agrees, "{}", table.id);
        }
    }
}
