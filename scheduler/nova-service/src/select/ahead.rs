//! What a request most likely needs of Placement, asked while the databases tell what has changed: that takes no time of its own.
//!
//! All of it is asked after the request came, so it is no older than what Nova would decide on. What turns out not to be needed is
//! thrown away.

use super::placement_snapshot::PlacementSnapshot;
use super::{Request, Selector};
use ebbtide_nova_cloud::{Next, PlacementQuery};
use serde_json::Value;
use uuid::Uuid;

/// What was asked before it was needed.
#[derive(Default)]
pub(super) struct Ahead {
    /// The provider of the host that the request gets if nothing has changed, and whether it is as
    /// it is known to be.
    pub(super) host: Option<(Uuid, bool)>,
    /// The candidates for which memory had none, as Placement answers.
    pub(super) answer: Option<(PlacementQuery, Value)>,
    /// What Placement says of those who would have to do with a preemption.
    pub(super) snapshot: Option<PlacementSnapshot>,
}

/// What it will be by what is known now.
enum Likely {
    Host(Uuid),
    /// Nothing fits, as far as memory knows.
    NoHost(PlacementQuery),
    /// Memory cannot know.
    Question(PlacementQuery),
}

impl Selector {
    /// Asks ahead.
    pub(super) async fn look_ahead(&self, request: &Request) {
        // Who of a server group is on the way is not known yet, and others of it may be decided
        // meanwhile.
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

    fn likely(&self, request: &Request) -> Option<Likely> {
        self.facts.read(|cloud| {
            let mut spec = request.schedule.spec.clone();
            let asked = cloud.ask(&mut spec).ok()?;
            let Ok(known) = cloud.candidates(&asked) else {
                return Some(Likely::Question(asked));
            };
            if known.is_empty() {
                return Some(Likely::NoHost(asked));
            }
            let (call, now) = (request.call.clone(), crate::clock::micros());
            let mut scheduling = cloud
                .decide(spec, call, &known, now, Some(request.seed))
                .ok()?;
            match scheduling.next() {
                Next::Claim(claim) => Some(Likely::Host(claim.host.uuid)),
                Next::Failed { .. } => Some(Likely::NoHost(asked)),
                Next::Done(_) => None,
            }
        })
    }

    async fn ask_ahead(&self, request: &Request, asked: PlacementQuery) {
        // Whatever goes wrong is asked again when it is needed, and told then.
        if let Ok(answer) = self.put_question(request, &asked).await {
            request.ahead().answer = Some((asked, answer));
        }
    }

    async fn look_for_room(&self, request: &Request, asked: &PlacementQuery) {
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
