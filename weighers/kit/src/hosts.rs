//! Made-up hosts to try a weigher or a filter on.

use crate::callable::{FilterAnswer, TriedFilter, TriedWeigher, WeigherAnswer};
use crate::random::SplitMix64;
use ebbtide_model::{GroupPolicy, Resources};
use ebbtide_weigher_api::{
    Column, Details, Fact, FactColumn, FilterError, HostBatch, HostFilter, PreemptibleRows,
    RequestDetails, RequestView, Texts, Weigher, WeigherError,
};

/// The image of the request. Some hosts have it among their texts, for weighers that look it up
/// there.
const IMAGE: &str = "0f9e8d7c-6b5a-4938-8716-253443526170";

/// Which sort of numbers the hosts have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// As in a cloud.
    Usual,
    /// Nothing is free, no instance runs, no fact is known.
    Empty,
    /// More is used than there is.
    Overcommitted,
    /// As large as numbers get.
    Huge,
}

impl Sort {
    pub(crate) const ALL: [Self; 4] = [Self::Usual, Self::Empty, Self::Overcommitted, Self::Huge];

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Usual => "usual hosts",
            Self::Empty => "hosts of which nothing is known",
            Self::Overcommitted => "overcommitted hosts",
            Self::Huge => "huge hosts",
        }
    }
}

/// Hosts with all that a weigher reads of them.
#[derive(Debug, Clone)]
pub(crate) struct Hosts {
    len: usize,
    columns: [Vec<f64>; Column::COUNT],
    offsets: Vec<u32>,
    ages: Vec<f64>,
    facts: Vec<(Fact, FactColumn)>,
}

impl Hosts {
    /// So many hosts for this weigher.
    pub(crate) fn new(weigher: &dyn Weigher, len: usize, sort: Sort, seed: u64) -> Self {
        Self::with(weigher.needs(), weigher.facts(), len, sort, seed)
    }

    /// So many hosts for this filter.
    pub(crate) fn for_filter(filter: &dyn HostFilter, len: usize, sort: Sort, seed: u64) -> Self {
        Self::with(filter.needs(), filter.facts(), len, sort, seed)
    }

    fn with(needs: &[Column], facts: &[Fact], len: usize, sort: Sort, seed: u64) -> Self {
        let mut chance = SplitMix64::new(seed);
        let mut columns: [Vec<f64>; Column::COUNT] = Default::default();
        for column in needs {
            columns[column.index()] = (0..len)
                .map(|_| number(*column, sort, &mut chance))
                .collect();
        }
        let facts = facts
            .iter()
            .map(|fact| (fact.clone(), values(fact, len, sort, &mut chance)));
        let facts = facts.collect();
        let mut offsets = vec![0];
        let mut ages = Vec::new();
        for _ in 0..len {
            let there = if sort == Sort::Empty {
                0
            } else {
                chance.below(5)
            };
            ages.extend((0..there).map(|_| chance.between(0, 500_000)));
            offsets.push(u32::try_from(ages.len()).unwrap_or(u32::MAX));
        }
        Self {
            len,
            columns,
            offsets,
            ages,
            facts,
        }
    }

    /// The same hosts in another order: host `i` is what host `order[i]` was.
    pub(crate) fn reordered(&self, order: &[usize]) -> Self {
        let pick = |column: &Vec<f64>| match column.is_empty() {
            true => Vec::new(),
            false => order.iter().map(|at| column[*at]).collect(),
        };
        let mut offsets = vec![0];
        let mut ages = Vec::new();
        for at in order {
            let (start, end) = (self.offsets[*at] as usize, self.offsets[at + 1] as usize);
            ages.extend_from_slice(&self.ages[start..end]);
            offsets.push(u32::try_from(ages.len()).unwrap_or(u32::MAX));
        }
        let facts = picked(&self.facts, order);
        Self {
            len: self.len,
            columns: self.columns.each_ref().map(pick),
            offsets,
            ages,
            facts,
        }
    }

    /// What the weigher gives, and what that took.
    pub(crate) fn weigh(&self, weigher: &TriedWeigher) -> Result<WeigherAnswer, WeigherError> {
        self.ask(|request, hosts| weigher.call(request, hosts))
    }

    /// What the filter answers, and what that took.
    pub(crate) fn filter(&self, filter: &TriedFilter) -> Result<FilterAnswer, FilterError> {
        self.ask(|request, hosts| filter.call(request, hosts))
    }

    fn ask<T>(&self, ask: impl FnOnce(&RequestView<'_>, &HostBatch<'_>) -> T) -> T {
        let hosts = HostBatch {
            len: self.len,
            columns: &self.columns,
            preemptibles: Some(PreemptibleRows {
                offsets: &self.offsets,
                age_seconds: &self.ages,
            }),
            details: Details {
                facts: &self.facts,
                ..Details::default()
            },
        };
        let mut resources = Resources::new();
        for (class, amount) in [("VCPU", 2), ("MEMORY_MB", 4096), ("DISK_GB", 20)] {
            if let Ok(class) = class.parse() {
                // These amounts are within the range.
                let _ = resources.set(class, amount);
            }
        }
        let request = RequestView {
            project_id: "6d1a4b1f0c9e4c0f9a5e3c2b1a0f9e8d",
            resources: &resources,
            preemptible: false,
            group_policy: Some(GroupPolicy::SoftAntiAffinity),
            details: RequestDetails {
                flavor: "m1.small",
                extra_specs: &[("hw:cpu_policy", "shared")],
                image_id: Some(IMAGE),
                scheduler_hints: &[],
            },
        };
        ask(&request, &hosts)
    }
}

fn number(column: Column, sort: Sort, chance: &mut SplitMix64) -> f64 {
    let is_amount = matches!(
        column,
        Column::FreeRamMb | Column::FreeVcpus | Column::FreeDiskMb
    );
    match sort {
        Sort::Empty => 0.0,
        Sort::Overcommitted if is_amount => chance.between(-1_000_000, -1),
        Sort::Huge if is_amount => 1e15 + chance.between(0, 1_000_000),
        Sort::Usual | Sort::Overcommitted | Sort::Huge => match column {
            Column::FreeRamMb | Column::FreeDiskMb => chance.between(0, 1 << 20),
            Column::FreeVcpus => chance.between(0, 512),
            Column::PreemptionNeeded => chance.between(0, 1),
            Column::EvictionCost => chance.between(0, 7200),
            Column::HypervisorVersion => 8_000_000.0 + chance.between(0, 2),
            Column::CellPreference => chance.between(-1, 1),
            _ => chance.between(0, 40),
        },
    }
}

/// Facts about these rows only, in this order.
pub(crate) fn picked(facts: &[(Fact, FactColumn)], rows: &[usize]) -> Vec<(Fact, FactColumn)> {
    let each = facts.iter().map(|(fact, column)| {
        let column = match column {
            FactColumn::Numbers(numbers) => {
                FactColumn::Numbers(rows.iter().map(|at| numbers[*at]).collect())
            }
            FactColumn::Texts(texts) => FactColumn::Texts(Texts {
                codes: rows.iter().map(|at| texts.codes[*at]).collect(),
                texts: texts.texts.clone(),
            }),
        };
        (fact.clone(), column)
    });
    each.collect()
}

/// Made-up values of a fact.
pub(crate) fn values(fact: &Fact, len: usize, sort: Sort, chance: &mut SplitMix64) -> FactColumn {
    if sort == Sort::Empty {
        return fact.unknown(len);
    }
    match fact {
        Fact::HostName => FactColumn::Texts(Texts {
            codes: (0..len)
                .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
                .collect(),
            texts: (0..len).map(|n| format!("compute-{n}")).collect(),
        }),
        Fact::Aggregates => {
            let text = |zone: u32| {
                format!(
                    r#"[{{"metadata":{{"availability_zone":"z{zone}","ram_weight_multiplier":"2.0"}},"name":"agg{zone}"}}]"#
                )
            };
            FactColumn::Texts(Texts {
                codes: (0..len)
                    .map(|_| u32::try_from(chance.below(4)).unwrap_or(0))
                    .collect(),
                texts: [vec!["[]".to_owned()], (1..4).map(text).collect()].concat(),
            })
        }
        Fact::Total(_) => FactColumn::Numbers((0..len).map(|_| chance.between(0, 1024)).collect()),
        Fact::Used(_) => FactColumn::Numbers((0..len).map(|_| chance.between(0, 900)).collect()),
        Fact::AllocationRatio(_) => {
            FactColumn::Numbers((0..len).map(|_| chance.between(1, 16)).collect())
        }
        Fact::Text(_) | Fact::AvailabilityZone => FactColumn::Texts(Texts {
            codes: (0..len)
                .map(|_| u32::try_from(chance.below(8)).unwrap_or(0))
                .collect(),
            texts: (0..8)
                .map(|n| match n {
                    0 => String::new(),
                    1 => IMAGE.to_owned(),
                    _ => format!("value-{n}"),
                })
                .collect(),
        }),
        Fact::Trait(_) | Fact::Has(_) => {
            FactColumn::Numbers((0..len).map(|_| chance.between(0, 1)).collect())
        }
        Fact::Number(_) => {
            FactColumn::Numbers((0..len).map(|_| chance.between(-100, 1000) / 8.0).collect())
        }
    }
}
