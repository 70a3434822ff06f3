//! Which instances leave a host that its owner takes back.

use crate::{Budgets, Engine, EngineError, HostTable, InstancePhase, InstanceView, PluginFailure};
use ebbtide_model::{GroupId, Reclaim, ServerId, StayReason, Timestamp};
use std::collections::BTreeMap;

/// What becomes of the instances of a reclaimed host. Those that are leaving already are in neither
/// list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostEviction {
    /// Those that leave now, each with what its loss costs, the cheapest first.
    pub leave: Vec<(ServerId, f64)>,
    /// Those that stay, by id, each with the reason.
    pub stay: Vec<(ServerId, StayReason)>,
}

/// The reclaim of a host, and what becomes of its instances.
#[derive(Debug, Clone, PartialEq)]
pub struct HostReclaim {
    pub host: String,
    pub reclaim: Reclaim,
    /// The instances that leave next and those that stay.
    pub eviction: HostEviction,
}

/// An instance that may leave if the budgets allow it.
struct Candidate<'a> {
    instance: InstanceView<'a>,
    cost: f64,
}

/// What is left of the disruption budgets, counted down.
struct BudgetsLeft<'a> {
    budgets: &'a Budgets,
    projects: BTreeMap<&'a str, u32>,
    groups: BTreeMap<GroupId, u32>,
}

impl<'a> BudgetsLeft<'a> {
    /// Takes a victim from its budgets. False: one of them allows none.
    fn take(&mut self, victim: &InstanceView<'a>) -> bool {
        let project = self.budgets.project(victim.project_id);
        let group = victim.group_id.and_then(|group| self.budgets.group(group));
        let of_project = self.projects.entry(victim.project_id).or_default();
        let no_group = &mut 0;
        let of_group = match victim.group_id {
            Some(group) => self.groups.entry(group).or_default(),
            None => no_group,
        };
        let is_left = |budget: Option<u32>, used: u32| budget.is_none_or(|left| used < left);
        if !is_left(project, *of_project) || !is_left(group, *of_group) {
            return false;
        }
        *of_project += 1;
        *of_group += 1;
        true
    }
}

impl Engine {
    /// Chooses which preemptible instances of a host leave for its owner: all of them, but for
    /// those that protected time, a disruption budget, the reclaim's maximum cost or the caller
    /// (`hold`) keeps. The cheapest leave first, then the younger, then those with the smaller id.
    /// A host that the table does not know has no instances.
    ///
    /// Each instance costs what it costs alone; the surcharges of cost modules for sets do not
    /// count, because the instances of a host may leave at different times.
    ///
    /// # Errors
    /// [`EngineError::CostModule`]: the cost module fails, and its failures are not to be ignored.
    pub fn empty_host(
        &self,
        table: &HostTable,
        host: &str,
        budgets: &Budgets,
        reclaim: &Reclaim,
        now: Timestamp,
        hold: impl Fn(ServerId) -> Option<StayReason>,
    ) -> Result<HostEviction, EngineError> {
        let mut eviction = HostEviction::default();
        let Some(index) = table.find_host(host) else {
            return Ok(eviction);
        };
        let mut candidates = Vec::new();
        for slot in table.slots_on(index) {
            let instance = table.view_of(*slot);
            match verdict(&instance, now, &hold) {
                Verdict::Leaving => {}
                Verdict::Stays(why) => eviction.stay.push((instance.id, why)),
                Verdict::MayLeave => candidates.push(Candidate {
                    cost: self.cost_alone(table, instance.id, now)?,
                    instance,
                }),
            }
        }
        candidates.sort_by(|a, b| {
            // One that has not been launched is the youngest.
            let launch =
                |c: &Candidate<'_>| c.instance.launched_at.map_or(i64::MAX, |at| at.as_millis());
            (a.cost.total_cmp(&b.cost))
                .then_with(|| launch(b).cmp(&launch(a)))
                .then_with(|| a.instance.id.cmp(&b.instance.id))
        });
        let mut left = BudgetsLeft {
            budgets,
            projects: BTreeMap::new(),
            groups: BTreeMap::new(),
        };
        let mut reclaim = reclaim.clone();
        for Candidate { instance, cost } in candidates {
            let id = instance.id;
            if !reclaim.affords(id, cost) {
                eviction.stay.push((id, StayReason::MaxCost { cost }));
            } else if !left.take(&instance) {
                eviction.stay.push((id, StayReason::Budget));
            } else {
                reclaim.charge(id, cost);
                eviction.leave.push((id, cost));
            }
        }
        eviction.stay.sort_by_key(|(id, _)| *id);
        Ok(eviction)
    }

    /// What the loss of an instance alone costs. As in decisions, a victim costs 1 if the cost
    /// module fails and its failures are ignored.
    fn cost_alone(
        &self,
        table: &HostTable,
        id: ServerId,
        now: Timestamp,
    ) -> Result<f64, EngineError> {
        let config = self.config();
        let policy = config.cost_module_failure.unwrap_or(config.plugin_failure);
        match self.price(table, &[id], now) {
            Ok(cost) => Ok(cost),
            Err(_) if policy == PluginFailure::Ignore => Ok(1.0),
            Err(error) => Err(EngineError::CostModule {
                module: self.cost_module.name().to_owned(),
                problem: format!("failed: {error}"),
            }),
        }
    }
}

/// What may become of an instance, before budgets and costs.
enum Verdict {
    Leaving,
    Stays(StayReason),
    MayLeave,
}

fn verdict(
    instance: &InstanceView<'_>,
    now: Timestamp,
    hold: &impl Fn(ServerId) -> Option<StayReason>,
) -> Verdict {
    match instance.phase {
        InstancePhase::Leaving => return Verdict::Leaving,
        InstancePhase::Retained => return Verdict::Stays(StayReason::Kept),
        _ if !instance.preemptible => return Verdict::Stays(StayReason::Normal),
        InstancePhase::Claimed => return Verdict::Stays(StayReason::Starting),
        InstancePhase::Building | InstancePhase::Running => {}
    }
    if let Some(why) = hold(instance.id) {
        return Verdict::Stays(why);
    }
    match instance.protected_until {
        Some(until) if now < until => Verdict::Stays(StayReason::Protected { until }),
        _ => Verdict::MayLeave,
    }
}
