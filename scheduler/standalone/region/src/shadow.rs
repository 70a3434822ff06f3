//! Shadow decisions: what another engine would have decided with the same data.

use crate::Region;
use crate::transition::Transition;
use ebbtide_engine::Engine;
use ebbtide_model::{
    Decision, DecisionComparison, DecisionOutcome, DecisionSide, PlacementRequest, ServerId,
};
use std::sync::Arc;

impl Region {
    /// Sets the shadow engine, which is compared with every decision from now on; `None`: no
    /// comparison.
    pub fn set_shadow(&mut self, engine: Option<Arc<Engine>>) {
        self.shadow = engine;
    }

    /// Records what the shadow engine would have decided for the same request at the same moment.
    pub(crate) fn in_shadow(
        &self,
        transition: &mut Transition<'_>,
        request: &PlacementRequest,
        decided: &Decision,
    ) {
        let Some(shadow) = &self.shadow else {
            return;
        };
        let budgets = self.remaining_budgets(transition.now);
        let (_, seed) = decided.id.0.as_u64_pair();
        let (table, now, id) = (&self.table, transition.now, decided.id);
        let instead = shadow.decide(table, &budgets, request, now, seed, id);
        let side = |decision: &Decision| {
            let victims: Vec<ServerId> = decision.victims().map(|(_, v)| v.server_id).collect();
            let price = |engine: &Engine| engine.price(table, &victims, now).ok();
            DecisionSide {
                hosts: match &decision.outcome {
                    DecisionOutcome::Placed(placements) => {
                        placements.iter().map(|place| place.host.clone()).collect()
                    }
                    DecisionOutcome::NoValidHost(_) => Vec::new(),
                },
                victims: u32::try_from(victims.len()).unwrap_or(u32::MAX),
                cost: price(&self.engine),
                shadow_cost: price(shadow),
            }
        };
        transition.effects.compared.push(DecisionComparison {
            decision_id: decided.id,
            flavor: request.flavor.name.clone(),
            decided: side(decided),
            warnings: match &instead {
                Ok(instead) => instead.explanation.warnings.clone(),
                Err(_) => Vec::new(),
            },
            shadow: instead.map(|d| side(&d)).map_err(|error| error.to_string()),
        });
    }
}
