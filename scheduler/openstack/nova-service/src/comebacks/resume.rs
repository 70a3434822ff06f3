//! Which servers are resumed now, and how.

use super::record::{ANY_HOST, RetainedServer, RetainedState};
use super::unshelving;
use super::{ResumeController, RetainedRow};
use crate::error::NovaServiceError;
use crate::evacuate::Evacuations;
use crate::facts::{Facts, amounts};
use crate::nova_api::ActionResult;
use ebbtide_engine::HostUsage;
use ebbtide_evacuation::{ClassCapacity, ComebackConfig, ReservedCapacity};
use ebbtide_model::{
    DecisionOutcome, HostHealth, ResourceClass, Resources, SavedState, Seconds, ServerId,
};
use ebbtide_nova_cloud::flavor_view;
use ebbtide_preemption::Victim;
use ebbtide_runtime::{clock, ids};
use ebbtide_swap::{PlacementSwap, RetakeResult};
use std::collections::BTreeMap;

/// How long a server that no host may have now is left out, so that others go first.
const REST: Seconds = Seconds(60);

/// Hosts that are up, by name, with what is free on them.
type Hosts = BTreeMap<String, HostUsage>;

/// Why an attempt came to nothing.
enum Refusal {
    /// It can be tried again: why it failed, in words for the log and the record.
    Failed(String),
    /// Another process has dealt with what the server holds: its owner has resized or shelved it.
    Changed,
}

impl RetainedServer {
    pub(super) fn waits(&self) -> bool {
        self.state == RetainedState::Waiting
    }

    /// What it needs beyond what it has kept, where it returns on its host.
    fn takes_again(&self) -> Resources {
        let mut needs = Resources::new();
        let kept = self.victim.keeps.as_ref();
        let kept = kept.map(|kept| amounts(&kept.allocations));
        for (provider, amounts) in amounts(&self.victim.had.allocations) {
            for (class, amount) in amounts {
                let kept = kept.as_ref().and_then(|kept| kept.get(&provider));
                let kept = kept.and_then(|kept| kept.get(&class)).copied().unwrap_or(0);
                if let Ok(class) = class.parse::<ResourceClass>() {
                    let sum = needs
                        .get(&class)
                        .saturating_add(amount.saturating_sub(kept));
                    // More than any host has stays more than any host has.
                    let most = sum.min(ebbtide_model::resource::MAX_AMOUNT);
                    let _ = needs.set(class, most);
                }
            }
        }
        needs
    }
}

/// What a host has of a class. A class that only another provider of the host has is left to
/// Placement.
fn room(usage: &HostUsage, class: &ResourceClass) -> ClassCapacity {
    let known = usage.classes.iter().find(|known| known.class == *class);
    known.map_or(
        ClassCapacity {
            free: i64::MAX,
            capacity: 0,
        },
        |known| ClassCapacity {
            free: known.free_full,
            capacity: known.capacity,
        },
    )
}

/// Whether a server fits on a host, with the reserve left there. A host has no other servers if
/// nothing of what the server needs is used.
fn fits_on(
    usage: &HostUsage,
    needs: &Resources,
    reserved: &ReservedCapacity,
    config: &ComebackConfig,
) -> bool {
    let alone = needs.iter().all(|(class, _)| {
        let room = room(usage, class);
        room.free >= room.capacity
    });
    config.fits(needs, reserved, alone, |class| room(usage, class))
}

/// Counts what a server takes on a host.
fn take(usage: &mut HostUsage, needs: &Resources) {
    for (class, amount) in needs.iter() {
        let known = usage.classes.iter_mut().find(|known| known.class == *class);
        if let Some(known) = known {
            let amount = i64::try_from(amount).unwrap_or(i64::MAX);
            known.free_full = known.free_full.saturating_sub(amount);
        }
    }
}

impl ResumeController {
    /// Resumes the servers that are due and fit, in fair order.
    pub(super) async fn resume_all(
        &mut self,
        evacuations: &Evacuations,
    ) -> Result<(), NovaServiceError> {
        let micros = clock::now().as_millis().saturating_mul(1000);
        let views = self
            .selector
            .facts
            .read(|cloud| cloud.host_summaries(micros));
        let up = views
            .into_iter()
            .filter(|view| view.health == HostHealth::Up);
        let mut hosts: Hosts = up.map(|view| (view.host.name, view.usage)).collect();
        for place in self.queue.places() {
            // Each round resumes a server or delays one, which is then not due any more.
            while let Some(id) = self.next(&place, &hosts) {
                if evacuations.is_stopping() {
                    return Ok(());
                }
                self.resume(evacuations, id, &mut hosts).await?;
                // What a shelved server takes is known when Nova has asked for its host: before,
                // headroom cannot be compared with two of them.
                if place == ANY_HOST && self.headroom.has_rules() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The server of a place that is resumed next.
    fn next(&self, place: &str, hosts: &Hosts) -> Option<ServerId> {
        let (now, config) = (clock::now(), &self.config);
        if self.queue.returning_at(place) >= config.most_at_once() {
            return None;
        }
        let may = |id| !self.queue.rests_elsewhere(id, now) && !self.is_locked(id);
        let turn = self.queue.in_turn(place, now, config, may).into_iter();
        let turn = turn.filter_map(|id| Some((id, self.needs(id)?)));
        let fits = |_, needs: &Resources, reserved: &ReservedCapacity| match place {
            ANY_HOST => hosts
                .values()
                .any(|usage| fits_on(usage, needs, reserved, config)),
            host => hosts
                .get(host)
                .is_some_and(|usage| fits_on(usage, needs, reserved, config)),
        };
        self.queue.first_that_fits(turn, now, config, fits)
    }

    fn is_locked(&self, id: ServerId) -> bool {
        let facts = &self.selector.facts;
        facts.read(|cloud| cloud.retained_server(id.0).is_none_or(|view| view.locked))
    }

    /// What a server needs to come back.
    fn needs(&self, id: ServerId) -> Option<Resources> {
        let server = &self.rows.get(&id)?.server;
        match server.comeback.saved_state {
            SavedState::Stopped => Some(server.takes_again()),
            SavedState::Hibernated => self.selector.facts.read(|cloud| {
                let flavor = flavor_view(cloud.retained_server(id.0)?.flavor);
                Some(flavor.properties().ok()?.resources)
            }),
        }
    }

    /// Resumes a server, or lets it wait longer.
    async fn resume(
        &mut self,
        evacuations: &Evacuations,
        id: ServerId,
        hosts: &mut Hosts,
    ) -> Result<(), NovaServiceError> {
        let needs = self.needs(id);
        let (Some(row), Some(needs)) = (self.rows.get(&id).cloned(), needs) else {
            self.forget(id);
            return Ok(());
        };
        let Some(host) = self.host_for(&row.server, hosts, &needs).await? else {
            // Nothing was tried.
            self.queue.rest_elsewhere(id, clock::now().plus(REST));
            return Ok(());
        };
        let mut begun = row;
        begun.server.begin(clock::now());
        if !self.write(evacuations, id, begun).await? {
            return Ok(());
        }
        let Some(begun) = self.rows.get(&id).cloned() else {
            return Ok(());
        };
        match self.act(evacuations, &begun.server).await {
            Ok(()) => {
                if let Some(usage) = hosts.get_mut(&host) {
                    take(usage, &needs);
                }
                let how = begun.server.comeback.saved_state;
                tracing::info!(server = %id, host, ?how, "the server is on its way back");
            }
            Err(Refusal::Changed) => {
                tracing::info!(server = %id, "its owner has changed it: it does not come back by itself");
                evacuations.forget_retained(id.0, begun.version).await?;
                self.forget(id);
            }
            Err(Refusal::Failed(why)) => {
                // Also if the claim's answer was lost.
                self.give_back(&begun.server).await;
                self.wait_longer(evacuations, id, begun, &why).await?;
            }
        }
        Ok(())
    }

    async fn wait_longer(
        &mut self,
        evacuations: &Evacuations,
        id: ServerId,
        mut row: RetainedRow,
        why: &str,
    ) -> Result<(), NovaServiceError> {
        self.metrics.comeback("failed");
        row.server.fail(why, clock::now(), &self.config);
        let not_before = row.server.comeback.not_before;
        tracing::warn!(
            code = "EB-DOOR-067",
            server = %id,
            %not_before,
            "the server could not be resumed: {why}; it is tried again"
        );
        self.write(evacuations, id, row).await?;
        Ok(())
    }

    /// The host on which a server would come back now. `None`: on none, or not yet, because its
    /// owner does not pay the price, or headroom would shrink.
    async fn host_for(
        &self,
        server: &RetainedServer,
        hosts: &Hosts,
        needs: &Resources,
    ) -> Result<Option<String>, NovaServiceError> {
        let (id, facts) = (server.victim.server, &self.selector.facts);
        let flavor = facts.read(|cloud| Some(cloud.retained_server(id.0)?.flavor.clone()));
        let Some(flavor) = flavor else {
            return Ok(None);
        };
        let nova = facts.database.nova();
        let market = &self.selector.market;
        if !market.pays(nova, id.0, &flavor_view(&flavor)).await? {
            return Ok(None);
        }
        let fits =
            |usage: &HostUsage| fits_on(usage, needs, &ReservedCapacity::new(), &self.config);
        let host = match server.comeback.saved_state {
            SavedState::Stopped => Some(server.victim.host.clone()),
            SavedState::Hibernated => match self.host_of_request(server).await? {
                Some(answer) => answer,
                // Only Nova knows what the request needs, so it decides alone.
                None => hosts
                    .iter()
                    .find(|(_, usage)| fits(usage))
                    .map(|(name, _)| name.clone()),
            },
        };
        // The host that the request would get may be another one than that with room to spare.
        let host = host.filter(|host| hosts.get(host).is_some_and(fits));
        let Some(host) = host else {
            return Ok(None);
        };
        let keeps_headroom = self.headroom.is_left_without(&host).await?;
        Ok(keeps_headroom.then_some(host))
    }

    /// The host that a request for a shelved server would get now. `None`: only Nova can tell.
    async fn host_of_request(
        &self,
        server: &RetainedServer,
    ) -> Result<Option<Option<String>>, NovaServiceError> {
        let facts = &self.selector.facts;
        let id = server.victim.server;
        let options = facts.nova_options();
        let request = unshelving::request(facts.database.nova(), &options, id).await?;
        let Some(mut request) = request else {
            return Ok(None);
        };
        // Nova has the server already, which a question for new servers must not name.
        let asked = ids::new();
        request.instance_uuid = asked.to_string();
        let decision = self.selector.what_if(request, vec![asked]).await;
        Ok(Some(match decision.outcome {
            DecisionOutcome::Placed(placements) => {
                placements.into_iter().next().map(|placed| placed.host)
            }
            DecisionOutcome::NoValidHost(_) => None,
        }))
    }

    /// Claims what the server needs, and has Nova start it.
    async fn act(&self, evacuations: &Evacuations, server: &RetainedServer) -> Result<(), Refusal> {
        let victim = &server.victim;
        let id = victim.server.0;
        let done = match server.comeback.saved_state {
            SavedState::Hibernated => self.actions.unshelve(id).await,
            SavedState::Stopped => {
                let held = self.swap(victim).retake(victim).await;
                match held.map_err(Refusal::Failed)? {
                    RetakeResult::Held => {}
                    RetakeResult::Full(why) => return Err(Refusal::Failed(why)),
                    RetakeResult::Changed => return Err(Refusal::Changed),
                }
                for (provider, held) in amounts(&victim.had.allocations) {
                    let given = evacuations.overcommitted(provider, &held).await;
                    let given = given.map_err(|error| Refusal::Failed(error.to_string()))?;
                    if given.is_some() {
                        let why = "another request got its capacity at the same time";
                        return Err(Refusal::Failed(why.to_owned()));
                    }
                }
                self.actions.start(id).await
            }
        };
        match done {
            ActionResult::Taken => Ok(()),
            ActionResult::Refused(why) => Err(Refusal::Failed(why)),
        }
    }

    /// Takes from a server that is still stopped what was claimed for its start.
    pub(super) async fn give_back(&self, server: &RetainedServer) {
        let victim = &server.victim;
        if server.comeback.saved_state != SavedState::Stopped {
            return;
        }
        if let Err(why) = self.swap(victim).release(victim).await {
            tracing::warn!(
                code = "EB-DOOR-023",
                server = %victim.server,
                "a stopped server still holds its room: {why}"
            );
        }
    }

    /// Claims what a server needs that its owner has started: Nova has asked for nothing.
    pub(super) async fn claim_for_owner(&self, server: &RetainedServer) {
        let victim = &server.victim;
        if server.comeback.saved_state != SavedState::Stopped {
            return;
        }
        let why = match self.swap(victim).retake(victim).await {
            Ok(RetakeResult::Held | RetakeResult::Changed) => return,
            Ok(RetakeResult::Full(why)) | Err(why) => why,
        };
        tracing::warn!(
            code = "EB-DOOR-069",
            server = %victim.server,
            host = victim.host,
            "its owner has started it, and Placement does not count what it uses: {why}"
        );
    }

    fn swap(&self, victim: &Victim) -> PlacementSwap<'_, Facts> {
        let facts = &self.selector.facts;
        let placement = facts
            .providers
            .placement(&format!("comeback {}", victim.server));
        PlacementSwap::new(placement, facts)
    }
}
