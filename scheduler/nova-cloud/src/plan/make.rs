//! (to come)
use super::{NoPlan, NoPlanReason, Plan, PlanOptions, ProviderTruth, Verdict};
use crate::candidates::Asked;
use crate::cloud::Cloud;
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova::schedule::Call;
impl Cloud {
    /// plan
    pub fn plan(
        &self,
        spec: &RequestSpec,
        call: &Call,
        asked: &Asked,
        now: i64,
        options: &PlanOptions,
    ) -> Result<Plan, NoPlan> {
        let _ = (spec, call, asked, now, options);
        Err(NoPlan {
            reason: NoPlanReason::Unsupported,
            text: "planning is not there yet".to_owned(),
            explanation: None,
        })
    }
    /// verify
    pub fn verify(&self, plan: &mut Plan, truth: &[ProviderTruth]) -> Verdict {
        let _ = (plan, truth);
        Verdict::Changed("verifying is not there yet".to_owned())
    }
}
