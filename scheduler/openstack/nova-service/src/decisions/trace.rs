//! What a request leaves behind, to be explained after its answer. Collecting it moves data that
//! the decision has made anyway.

use ebbtide_model::{DecisionId, RefusedClaim, ServerId, Timestamp};
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova::schedule::ScheduleCall;
use ebbtide_nova_cloud::{
    CandidateHosts, NoPlan, PlacementQuery, PlannedVictim, PreemptionPlan, SchedulingRecord,
    SelectedHost,
};
use std::time::Duration;
use uuid::Uuid;

/// Most refused claims that are kept of one request.
const CLAIMS: usize = 32;

/// What is known of a request's way.
#[derive(Default)]
pub(crate) struct DecisionTrace {
    /// How often hosts were chosen.
    pub(super) runs: u32,
    /// The last choice.
    pub(super) record: Option<SchedulingRecord>,
    /// What Placement offered when it was asked last, if that was nothing.
    pub(super) offered: Option<CandidateHosts>,
    /// The hosts of the answer, for each instance.
    pub(super) selected: Vec<Vec<SelectedHost>>,
    /// The plan that was carried out, or why there was none.
    pub(super) plan: Option<Box<PreemptionPlan>>,
    pub(super) no_plan: Option<Box<NoPlan>>,
    pub(super) refused: Vec<RefusedClaim>,
    /// Each part once, with the sum of its times.
    pub(super) times: Vec<(&'static str, Duration)>,
    resumed: bool,
}

impl DecisionTrace {
    /// Hosts were chosen, or not; see `record`.
    pub(crate) fn decided(&mut self, record: SchedulingRecord) {
        self.runs += 1;
        self.record = Some(record);
        self.offered = None;
    }

    /// Placement has no host for the request: what was chosen from memory before was wrong.
    pub(crate) fn nothing_offered(&mut self, offered: CandidateHosts) {
        self.offered = Some(offered);
        self.record = None;
    }

    /// Placement did not take a claim, or the host had changed before it was tried.
    pub(crate) fn refused(&mut self, instance: &str, host: &str, reason: impl Into<String>) {
        if self.refused.len() < CLAIMS {
            self.refused.push(RefusedClaim {
                server_id: ServerId(instance.parse::<Uuid>().unwrap_or_default()),
                host: host.to_owned(),
                reason: reason.into(),
            });
        }
    }

    /// The answer has these hosts.
    pub(crate) fn selected(&mut self, selected: Vec<Vec<SelectedHost>>) {
        self.selected = selected;
    }

    /// Victims leave for the request.
    pub(crate) fn planned(&mut self, plan: PreemptionPlan) {
        self.plan = Some(Box::new(plan));
    }

    /// The victims that leave for the request.
    pub(crate) fn into_victims(self) -> Vec<PlannedVictim> {
        self.plan.map(|plan| plan.victims).unwrap_or_default()
    }

    /// No victims can leave for the request.
    pub(crate) fn not_planned(&mut self, why: NoPlan) {
        self.no_plan = Some(Box::new(why));
    }

    /// A part took so long, once more.
    pub(crate) fn took(&mut self, part: &'static str, time: Duration) {
        match self.times.iter_mut().find(|(known, _)| *known == part) {
            Some((_, sum)) => *sum += time,
            None => self.times.push((part, time)),
        }
    }

    /// Another scheduler, or an earlier process of this one, had decided the request.
    pub(crate) fn resumed(&mut self) {
        self.resumed = true;
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.resumed
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Every instance has a host.
    Selected,
    /// An exception of Nova's.
    Raised {
        class: String,
        /// Its text.
        message: String,
    },
}

/// A request that has its answer.
pub(crate) struct AnsweredRequest {
    pub(crate) decision_id: DecisionId,
    pub(crate) at: Timestamp,
    pub(crate) request_id: String,
    pub(crate) user_id: String,
    pub(crate) spec: RequestSpec,
    pub(crate) call: ScheduleCall,
    pub(crate) asked: Option<PlacementQuery>,
    pub(crate) seed: u64,
    /// Placement did not answer a query for the request.
    pub(crate) placement_silent: bool,
    pub(crate) answer: Answer,
    pub(crate) trace: DecisionTrace,
}
