//! A request on its way: claimed where there is room, else a preemption, decided by the engine, of
//! the cheapest victims of one host.

use super::drive::ActivePreemption;
use super::ledger::LedgerWrite;
use super::placement::{amounts, holding, new_claim};
use super::world::NovaWorld;
use crate::Mutation;
use crate::violation::Invariant;
use ebbtide_model::{EvacuationCause, EvacuationId, InterruptionBehaviour, Seconds, ServerId};
use ebbtide_openstack::{AllocationResult, OpenStackError, RequestEffect};
use ebbtide_preemption::{Newcomer, Preemption, PreemptionState, ReplyWhen, Victim, VictimState};
use std::collections::VecDeque;
use uuid::Uuid;

/// A request is planned so often before there is no valid host.
const PLANS: u32 = 3;
/// A ledger that is away is asked so often to take a new row.
const TRIES: u32 = 20;

impl NovaWorld {
    /// A scheduler takes the next request, or one again that was taken before.
    pub(super) fn take_request(&mut self, who: usize) -> bool {
        if !self.schedulers[who].works() {
            return false;
        }
        let Some(n) = self.queue.pop_front() else {
            return false;
        };
        self.requests[n].holders.push(who);
        if !self.resume(who, n, true) {
            self.decide(who, n);
        }
        true
    }

    /// Decides about a request.
    pub(super) fn decide(&mut self, who: usize, n: usize) {
        let request = self.requests[n].clone();
        if !request.waits || request.deleted {
            self.requests[n].drop_holder(who);
            return;
        }
        if request.plans >= PLANS {
            return self.no_valid_host(who, n);
        }
        self.requests[n].plans += 1;
        let mut hosts = 0..self.agents.len();
        if let Some(host) = hosts.find(|h| !self.is_reclaimed(*h) && self.free(*h) >= request.vcpus)
        {
            return self.claim(who, n, host);
        }
        if request.spot {
            return self.no_valid_host(who, n);
        }
        match self.cheapest(who, &request) {
            None => self.no_valid_host(who, n),
            Some((host, victims)) => self.preempt(who, n, host, &victims),
        }
    }

    /// There is room: it is claimed, as the Nova service claims it.
    fn claim(&mut self, who: usize, n: usize, host: usize) {
        let request = &self.requests[n];
        let Some(new) = new_claim(request.instance, host, request.vcpus) else {
            return self.answer(who, n, None);
        };
        let again = request.redelivered || !request.doubtful.is_empty();
        let tried = self.placement.with_client(async |placement| {
            if again {
                ebbtide_swap::replace(placement, &new, async { None }).await
            } else {
                placement.claim_new(&new).await
            }
        });
        match tried {
            Ok(AllocationResult::Yes) => {
                self.requests[n].doubtful.clear();
                self.answer(who, n, Some(host));
            }
            Ok(AllocationResult::No { .. }) => self.decide(who, n),
            // Nova's AllocationUpdateFailed.
            Err(OpenStackError::ConsumerChanged { .. }) => self.no_valid_host(who, n),
            Err(error) => {
                if error.effect() == RequestEffect::Unknown {
                    self.requests[n].doubtful.push(new.clone());
                    let held = self
                        .placement
                        .with_client(async |placement| ebbtide_swap::holds(placement, &new).await);
                    if let Ok(true) = held {
                        self.requests[n].doubtful.clear();
                        return self.answer(who, n, Some(host));
                    }
                }
                self.decide(who, n);
            }
        }
    }

    /// There is none; what may have been claimed without being heard of is taken back.
    fn no_valid_host(&mut self, who: usize, n: usize) {
        let doubtful = std::mem::take(&mut self.requests[n].doubtful);
        if !doubtful.is_empty() {
            // Patience: it is tried until it is heard, or nearly so.
            for _ in 0..TRIES {
                let back = self.placement.with_client(async |placement| {
                    ebbtide_swap::take_back(placement, &doubtful).await
                });
                if back.is_ok() {
                    break;
                }
            }
        }
        self.answer(who, n, None);
    }

    fn preempt(&mut self, who: usize, n: usize, host: usize, victims: &[Uuid]) {
        let id = self.new_id();
        self.check_place(self.requests[n].instance, host);
        let mut record = self.record(id, n, host, victims);
        record.answerer = Some(self.schedulers[who].name.clone());
        let name = self.schedulers[who].name.clone();
        let instance = self.requests[n].instance;
        self.log(|s| {
            let names: Vec<String> = victims.iter().map(|v| s.of(*v)).collect();
            format!(
                "{name} plans: {} on host-{host} for {}",
                names.join(", "),
                s.of(instance)
            )
        });
        self.write_down(who, n, record, 0);
    }

    /// Writes a new row. A ledger that is away, or does not answer, is asked again while the caller
    /// waits.
    fn write_down(&mut self, who: usize, n: usize, record: Preemption, tries: u32) {
        let id = record.id;
        let written = self.ledger.insert(self.schedulers[who].owner(), &record);
        self.note_lost_answer(&record, &record);
        match written {
            LedgerWrite::Updated(_) | LedgerWrite::Exists => {
                let victims = record.victims.iter().map(|v| v.server.0);
                self.schedulers[who].leaving.extend(victims);
                let driven = ActivePreemption {
                    version: 1,
                    record,
                    caller: Some(n),
                    adopted_at: None,
                    doubtful: false,
                    pending: VecDeque::new(),
                    unwritten: false,
                };
                self.schedulers[who].driven.insert(id, driven);
            }
            LedgerWrite::VictimTaken => {
                self.schedulers[who].leaving = self.ledger.victims();
                self.decide(who, n);
            }
            // The message went to another scheduler while the ledger did not answer: that one
            // answers.
            LedgerWrite::RequestTaken => {
                if !self.resume(who, n, false) {
                    self.decide(who, n);
                }
            }
            // Without the ledger no server is evicted.
            _ if tries >= TRIES => self.answer(who, n, None),
            _ => {
                self.schedulers[who].rests = true;
                self.schedulers[who]
                    .writing
                    .insert(id, (n, record, tries + 1));
            }
        }
    }

    /// Rows that could not be written, once more.
    pub(super) fn write_down_again(&mut self, who: usize) -> bool {
        if !self.schedulers[who].works() {
            return false;
        }
        let again = std::mem::take(&mut self.schedulers[who].writing);
        let moved = !again.is_empty();
        for (_, (n, record, tries)) in again {
            // Found on the way that it has to end.
            if self.schedulers[who].replaced {
                break;
            }
            self.write_down(who, n, record, tries);
        }
        moved
    }

    /// The victims keep in Placement what the newcomer does not need, until they are gone.
    /// Otherwise another instance could get capacity on which a victim still runs. The order is
    /// that of the plan, as in the Nova service.
    fn keep_remaining_allocations(&mut self, victims: &mut [Victim], host: usize, needed: u64) {
        let needed = i64::try_from(needed).unwrap_or(i64::MAX);
        let wanted = needed.saturating_sub(self.balance(host)).max(0);
        let wanted = wanted.unsigned_abs();
        let mut missing = wanted;
        for victim in &mut *victims {
            let Some((_, had)) = amounts(&victim.had) else {
                continue;
            };
            let gives = had.min(missing);
            missing -= gives;
            if had > gives && !self.breaks(Mutation::SurplusGivenAtOnce) {
                victim.keeps = Some(holding(host, had - gives, None));
            }
        }
        let frees = victims.iter().filter_map(|victim| {
            let (_, had) = amounts(&victim.had)?;
            let keeps = victim.keeps.as_ref().and_then(amounts);
            Some(had - keeps.map_or(0, |(_, vcpus)| vcpus))
        });
        let frees: u64 = frees.sum();
        if frees > wanted {
            let what = format!(
                "a swap gives {frees} VCPU of running victims to a newcomer that needs {wanted}"
            );
            self.fail(Invariant::NoRoomTwice, what);
        }
    }

    /// An instance as the victim of a record; `None`: it holds nothing.
    pub(super) fn victim(&mut self, server: Uuid, host: usize) -> Option<Victim> {
        let evacuation = EvacuationId(self.new_id());
        self.event_log.name(evacuation.0, "evacuation");
        let held = self.placement.consumers.get(&server).copied()?;
        Some(Victim {
            server: ServerId(server),
            name: String::new(),
            cost: 0.0,
            evacuation,
            host: self.agents[host].name.clone(),
            had: holding(host, held.vcpus, Some(held.generation)),
            generation: held.generation,
            keeps: None,
            behaviour: InterruptionBehaviour::Terminate,
            grace: grace_of(server),
            flavor: "spot".to_owned(),
            launched_at: self.instances.get(&server).map(|i| i.since),
            released: false,
            state: VictimState::Claimed,
        })
    }

    fn record(&mut self, id: Uuid, n: usize, host: usize, victims: &[Uuid]) -> Preemption {
        let name = self.agents[host].name.clone();
        let request = self.requests[n].clone();
        let at_once = self.at_once;
        let mut chosen = Vec::with_capacity(victims.len());
        for server in victims {
            match self.victim(*server, host) {
                Some(victim) => chosen.push(victim),
                None => {
                    let what = "a victim was planned that holds nothing".to_owned();
                    self.fail(Invariant::NoVictimTooMany, what);
                }
            }
        }
        self.keep_remaining_allocations(&mut chosen, host, request.vcpus);
        Preemption {
            id,
            cause: EvacuationCause::Preemption,
            reclaim_owner: None,
            decision_id: None,
            request_id: format!("req-{n}"),
            unique_id: format!("message-{n}"),
            planned_at: self.now,
            state: PreemptionState::Planned,
            answerer: None,
            reply_when: if at_once {
                ReplyWhen::AtOnce
            } else {
                ReplyWhen::RoomFree
            },
            answered: false,
            in_doubt: false,
            unconfirmed: false,
            caller_seen: None,
            newcomers: vec![Newcomer {
                instance: request.instance,
                host: name,
                claim: holding(host, request.vcpus, None),
                before: None,
            }],
            victims: chosen,
            result: serde_json::json!(host),
            reason: None,
            withdrawal: None,
            returned: false,
            give_back_at: None,
            give_back_refusals: 0,
        }
    }
}

/// The grace period of an instance. The longest exceeds the wait for the room.
pub(super) fn grace_of(server: Uuid) -> Seconds {
    Seconds([0, 6, 15, 90][(server.as_u128() % 4) as usize])
}
