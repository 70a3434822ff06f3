//! What a set of victims costs beyond the sum of its members, where the cost module says so.
//!
//! The search keeps the sum as its lower bound; a surcharge is worked out where hosts are solved,
//! and once more for all victims of a decision together.

use crate::candidates::ShapeFacts;
use crate::plugins::{DecideFailure, FailedPlugins};
use crate::ranking::facts;
use crate::state::DecisionState;
use crate::table::{InstanceRow, Slot};
use crate::{Engine, HostTable};
use ebbtide_cost_api::{
    CostModule, Fact, FactColumn, MAX_COST, NO_END, SetCost, Texts, VictimBatch,
};
use ebbtide_model::Timestamp;
use ebbtide_solver::{EvictionCost, MAX_CANDIDATES};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// The form of the surcharge.
#[derive(Clone, Default)]
pub(crate) enum Surcharge {
    /// Costs just add up.
    #[default]
    None,
    /// What the first, the second, … victim of a project costs more.
    PerProject(Vec<EvictionCost>),
    /// Whatever the module says of a set.
    Monotone(Arc<dyn CostModule>),
}

impl fmt::Debug for Surcharge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::PerProject(_) => "PerProject",
            Self::Monotone(_) => "Monotone",
        })
    }
}

impl Surcharge {
    /// Asks the module.
    ///
    /// # Errors
    /// Steps that are no costs, or that fall.
    pub(crate) fn of(engine: &Engine, broken: &FailedPlugins) -> Result<Self, DecideFailure> {
        if broken.has_cost_module() {
            return Ok(Self::None);
        }
        let module = &engine.cost_module;
        match module.set_cost() {
            SetCost::Sum => Ok(Self::None),
            SetCost::Monotone => Ok(Self::Monotone(module.clone())),
            SetCost::PerProject => {
                let most = u32::try_from(MAX_CANDIDATES).unwrap_or(u32::MAX);
                let mut steps: Vec<EvictionCost> = Vec::with_capacity(MAX_CANDIDATES);
                for n in 1..=most {
                    let step = cost_of(module.nth_of_a_project(n))?;
                    if steps.last().is_some_and(|before| step < *before) {
                        return Err(DecideFailure::CostModule(format!(
                            "charges less for victim number {n} of a project than for the one before it"
                        )));
                    }
                    steps.push(step);
                }
                Ok(Self::PerProject(steps))
            }
        }
    }

    /// The steps by project; none if the surcharge has another form.
    pub(crate) fn steps(&self) -> &[EvictionCost] {
        match self {
            Self::PerProject(steps) => steps,
            Self::None | Self::Monotone(_) => &[],
        }
    }

    /// What all these victims together cost beyond their sum.
    ///
    /// # Errors
    /// What the module failed with.
    pub(crate) fn of_all(
        &self,
        state: &DecisionState<'_>,
        shapes: &[ShapeFacts],
        victims: &[Slot],
    ) -> Result<EvictionCost, DecideFailure> {
        match self {
            Self::None => Ok(EvictionCost::ZERO),
            Self::PerProject(steps) => {
                let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
                let mut micros = 0u64;
                for &slot in victims {
                    let count = counts.entry(state.table.row(slot).project).or_default();
                    let step = steps.get(*count).or_else(|| steps.last());
                    micros = micros.saturating_add(step.map_or(0, |step| step.micros()));
                    *count += 1;
                }
                Ok(EvictionCost::from_micros(micros))
            }
            Self::Monotone(module) => {
                if victims.is_empty() {
                    return Ok(EvictionCost::ZERO);
                }
                let columns =
                    BatchColumns::of(state, module.as_ref(), shapes, victims.iter().copied());
                let all: Vec<usize> = (0..victims.len()).collect();
                surcharge(module.as_ref(), &columns.batch(), &all)
            }
        }
    }
}

/// What a module says of a set.
pub(crate) fn surcharge(
    module: &dyn CostModule,
    batch: &VictimBatch<'_>,
    set: &[usize],
) -> Result<EvictionCost, DecideFailure> {
    let units = module
        .surcharge(batch, set)
        .map_err(|error| DecideFailure::CostModule(format!("failed at a set: {error}")))?;
    cost_of(units)
}

fn cost_of(units: f64) -> Result<EvictionCost, DecideFailure> {
    match EvictionCost::from_units(units) {
        Ok(cost) if units <= MAX_COST => Ok(cost),
        _ => Err(DecideFailure::CostModule(format!(
            "gave {units} as a surcharge; a cost is finite, not negative and at most {MAX_COST}"
        ))),
    }
}

/// Names of flavors, of which many candidates share one.
#[derive(Debug, Default)]
struct Flavors {
    column: Texts,
    /// The place of each flavor's name, by the table's number.
    known: HashMap<u32, u32>,
}

impl Flavors {
    fn add(&mut self, table: &HostTable, flavor: u32) {
        let texts = &mut self.column.texts;
        let place = *self.known.entry(flavor).or_insert_with(|| {
            texts.push(table.flavor_name(flavor).to_owned());
            u32::try_from(texts.len() - 1).unwrap_or(u32::MAX)
        });
        self.column.codes.push(place);
    }
}

/// The columns of candidates that a cost module reads.
#[derive(Debug, Default)]
pub(crate) struct BatchColumns {
    ages: Vec<f64>,
    vcpus: Vec<f64>,
    memory: Vec<f64>,
    prices: Vec<f64>,
    max_prices: Vec<f64>,
    priorities: Vec<u8>,
    projects: Vec<u32>,
    ends: Vec<f64>,
    flavors: Option<Texts>,
    facts: Vec<(Fact, FactColumn)>,
}

impl BatchColumns {
    /// What this module reads of candidates whose shapes are known.
    pub(crate) fn of(
        state: &DecisionState<'_>,
        module: &dyn CostModule,
        shapes: &[ShapeFacts],
        slots: impl Iterator<Item = Slot>,
    ) -> Self {
        let size = |row: &InstanceRow| {
            let facts = shapes.get(row.shape as usize);
            facts.map_or((0.0, 0.0), |f| (f.vcpus, f.memory_mb))
        };
        Self::new(state.table, state.now, module, slots, size)
    }

    /// The columns that a module reads of an instance; `size` returns VCPUs and MiB.
    pub(crate) fn new(
        table: &HostTable,
        now: Timestamp,
        module: &dyn CostModule,
        slots: impl Iterator<Item = Slot>,
        size: impl Fn(&InstanceRow) -> (f64, f64),
    ) -> Self {
        let mut columns = Self::default();
        let mut hosts = Vec::new();
        let reads_facts = !module.facts().is_empty();
        let mut flavors = module.reads_flavors().then(Flavors::default);
        for slot in slots {
            let row = table.row(slot);
            if reads_facts {
                hosts.push(row.host);
            }
            let age_ms = u64::try_from(row.age_millis(now)).unwrap_or(0);
            let (vcpus, memory) = size(row);
            columns.ages.push(age_ms as f64 / 1000.0);
            columns.vcpus.push(vcpus);
            columns.memory.push(memory);
            columns
                .prices
                .push(row.price_per_hour.micros() as f64 / 1e6);
            columns.max_prices.push(row.max_price.micros() as f64 / 1e6);
            columns.priorities.push(row.priority);
            columns.projects.push(row.project);
            columns
                .ends
                .push(row.ends_at.millis().map_or(NO_END, |end| {
                    end.saturating_sub(now.as_millis()).max(0) as f64 / 1000.0
                }));
            if let Some(flavors) = &mut flavors {
                flavors.add(table, row.flavor);
            }
        }
        columns.flavors = flavors.map(|flavors| flavors.column);
        let facts = module.facts().iter();
        columns.facts = facts
            .map(|fact| (fact.clone(), facts::column(table, &hosts, fact)))
            .collect();
        columns
    }

    pub(crate) fn batch(&self) -> VictimBatch<'_> {
        VictimBatch {
            len: self.ages.len(),
            age_seconds: &self.ages,
            vcpus: &self.vcpus,
            memory_mb: &self.memory,
            price_per_hour: &self.prices,
            max_price: &self.max_prices,
            priority: &self.priorities,
            project: &self.projects,
            ends_in_seconds: &self.ends,
            flavors: self.flavors.as_ref(),
            facts: &self.facts,
        }
    }
}
