//! What plugins in shadow would have decided, from what a decision was made from.

use crate::cloud::Cloud;
use crate::explain::SchedulingRecord;
use crate::plan::{NoPlan, NoPlanReason, PlanRules, PreemptionPlan};
use ebbtide_engine::Engine;
use ebbtide_model::{DecisionSide, ServerId, Timestamp};
use ebbtide_nova::filters::{Context, FilterPlugins};
use ebbtide_nova::model::Options;
use ebbtide_nova::schedule::sorted;
use ebbtide_nova::states::HostStateList;
use ebbtide_nova::weighing::Plugins;

/// By what decisions are compared.
#[derive(Debug)]
pub(crate) struct ShadowRules {
    pub(crate) weighers: Plugins,
    pub(crate) filters: FilterPlugins,
    pub(crate) engine: Engine,
}

impl ShadowRules {
    /// Nova's options with the weighers and filters in shadow.
    fn options(&self, options: &Options) -> Options {
        options
            .clone()
            .with_plugins(self.weighers.clone())
            .with_filter_plugins(self.filters.clone())
    }
}

/// A decision and what it would have been in shadow.
#[derive(Debug, Clone, PartialEq)]
pub struct ShadowChoice {
    /// The decision. Chance and claims come after it.
    pub decided: DecisionSide,
    /// In shadow, or why there is none.
    pub shadow: Result<DecisionSide, String>,
    /// Rule violations of plugins in shadow.
    pub warnings: Vec<String>,
}

impl SchedulingRecord {
    /// The first host by the weighers that decided, and by those in shadow. `None`: nothing is in
    /// shadow; or the request was for several servers, and what one gets changes the hosts for the
    /// next; or the decision has narrowed what it asks for (NUMA cells, PCI devices).
    #[must_use]
    pub fn in_shadow(&self) -> Option<ShadowChoice> {
        let shadow = self.shadow.as_ref()?;
        let [record] = self.instances.as_slice() else {
            return None;
        };
        let mut spec = self.spec.clone();
        let devices = spec
            .pci_requests
            .as_ref()
            .is_some_and(|all| !all.is_empty());
        if devices || spec.numa_topology.is_some() {
            return None;
        }
        // The decision has written the host into the group.
        if let (Some(group), [_]) = (spec.instance_group.as_mut(), self.chosen.as_slice()) {
            group.hosts.pop();
        }
        let side = |at: Option<usize>| DecisionSide {
            hosts: at
                .map(|at| record.states.get(at).host.clone())
                .into_iter()
                .collect(),
            ..DecisionSide::default()
        };
        let options = shadow.options(&self.options);
        let context = Context {
            options: &options,
            now: self.now,
        };
        let hosts = self.hosts.iter().collect();
        let mut states = record.states.clone();
        let sorted = sorted(&mut states, hosts, &spec, &context, 0);
        Some(ShadowChoice {
            decided: side(record.sort.best.first().map(|(at, _)| *at)),
            shadow: sorted
                .map(|sorted| side(sorted.hosts.first().copied()))
                .map_err(|fault| fault.to_string()),
            warnings: Vec::new(),
        })
    }
}

impl Cloud {
    /// Compares a plan with the one that `plan` makes by the rules in shadow, on the same state.
    /// `None`: nothing is in shadow. `now` in microseconds since 1970, UTC.
    pub(crate) fn compare_plan(
        &self,
        decided: &PreemptionPlan,
        now: i64,
        plan: impl FnOnce(PlanRules<'_>) -> Result<PreemptionPlan, NoPlan>,
    ) -> Option<ShadowChoice> {
        let shadow = self.shadow.as_ref()?;
        let at = Timestamp::from_millis(now.div_euclid(1000));
        let side = |plan: &PreemptionPlan| {
            let victims: Vec<ServerId> = plan.victims.iter().map(|v| v.uuid.into()).collect();
            let price = |engine: &Engine| engine.price(&self.victims, &victims, at).ok();
            DecisionSide {
                hosts: plan.instances.iter().map(|i| i.host.host.clone()).collect(),
                victims: u32::try_from(victims.len()).unwrap_or(u32::MAX),
                cost: price(&self.engine),
                shadow_cost: price(&shadow.engine),
            }
        };
        let options = shadow.options(self.options());
        let instead = plan(PlanRules {
            engine: &shadow.engine,
            options: Some(&options),
        });
        let warnings = instead
            .as_ref()
            .map(|plan| plan.explanation.warnings.clone());
        Some(ShadowChoice {
            decided: side(decided),
            warnings: warnings.unwrap_or_default(),
            shadow: match instead {
                Ok(plan) => Ok(side(&plan)),
                Err(none) if none.reason == NoPlanReason::NotEnoughVictims => {
                    Ok(DecisionSide::default())
                }
                Err(none) => Err(none.text),
            },
        })
    }
}
