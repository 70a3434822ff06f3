//! Prefetches the data that a request most likely needs from Placement, while the databases report
//! their changes; this costs no extra time.
//!
//! All queries are sent after the request arrived, so their data are no older than those on which
//! Nova would decide. Unneeded data are dropped.

use super::placement_snapshot::PlacementSnapshot;
use super::{SelectRequest, Selector};
use ebbtide_nova_cloud::{PlacementQuery, SchedulingAction};
use serde_json::Value;
use uuid::Uuid;

/// The prefetched data.
#[derive(Default)]
pub(super) struct Prefetch {
    /// The provider of the host that the request gets if nothing has changed, and whether its known
    /// state is current.
    pub(super) host: Option<(Uuid, bool)>,
    /// Placement's candidates, if memory had none.
    pub(super) answer: Option<(PlacementQuery, Value)>,
    /// Placement's data for the probable preemption.
    pub(super) snapshot: Option<PlacementSnapshot>,
}

/// The probable outcome, by what is known now.
enum Likely {
    Host(Uuid),
    /// Nothing fits according to memory.
    NoHost(PlacementQuery),
    /// Only Placement can answer.
    Question(PlacementQuery),
}

impl Selector {
    /// Prefetches.
    pub(super) async fn look_ahead(&self, request: &SelectRequest) {
        // The group's members that are on their way are not known yet, and other members may be
        // decided meanwhile.
        if request.call.no_placement || request.schedule.spec.instance_group.is_some() {
            return;
        }
        match self.likely(request) {
            None => {}
            Some(Likely::Host(host)) => {
                if let Some(as_known) = self.looks_as_known(request, host).await {
                    request.ahead().host = Some((host, as_known));
                }
            }
            Some(Likely::Question(asked)) => self.ask_ahead(request, asked).await,
            Some(Likely::NoHost(asked)) => {
                let room = asked.clone();
                tokio::join!(
                    self.ask_ahead(request, asked),
                    self.look_for_room(request, &room)
                );
            }
        }
    }

    fn likely(&self, request: &SelectRequest) -> Option<Likely> {
        self.facts.read(|cloud| {
            let mut spec = request.schedule.spec.clone();
            let asked = cloud.ask(&mut spec).ok()?;
            let Ok(known) = cloud.candidates(&asked) else {
                return Some(Likely::Question(asked));
            };
            if known.is_empty() {
                return Some(Likely::NoHost(asked));
            }
            let (call, now) = (request.call.clone(), ebbtide_runtime::clock::unix_micros());
            let mut scheduling = cloud
                .decide(spec, call, &known, now, Some(request.seed))
                .ok()?;
            match scheduling.next() {
                SchedulingAction::Claim(claim) => Some(Likely::Host(claim.host.uuid)),
                SchedulingAction::Failed { .. } => Some(Likely::NoHost(asked)),
                SchedulingAction::Done(_) => None,
            }
        })
    }

    async fn ask_ahead(&self, request: &SelectRequest, asked: PlacementQuery) {
        // A failed query is repeated when it is needed, and its error is reported then.
        if let Ok(answer) = self.put_question(request, &asked).await {
            request.ahead().answer = Some((asked, answer));
        }
    }

    async fn look_for_room(&self, request: &SelectRequest, asked: &PlacementQuery) {
        if !self.may_make_room(request) {
            return;
        }
        let options = super::preempt::plan_options(request);
        if let Ok(plan) = self.plan_once(request, asked, &options)
            && let Ok(snapshot) = self.snapshot(request, &plan).await
        {
            request.ahead().snapshot = Some(snapshot);
        }
    }
}
