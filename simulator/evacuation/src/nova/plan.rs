//! A request on its way: claimed where there is room, else a preemption with the fewest victims of one host.

use super::drive::Driven;
use super::ledger::Written;
use super::placement::{Answer, Write, amounts, holding};
use super::world::NovaWorld;
use crate::Mutation;
use crate::violation::Promise;
use ebbtide_model::{EvacuationId, InterruptionBehaviour, Seconds, ServerId};
use ebbtide_preemption::{Newcomer, Preemption, ReplyWhen, State, Victim, VictimState};
use std::collections::VecDeque;
use uuid::Uuid;

/// A request is planned so often before there is no valid host.
const PLANS: u32 = 3;

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
        if !self.resume(who, n) {
            self.decide(who, n);
        }
        true
    }

    /// Decides about a request, or gives it back to the queue for a moment.
    pub(super) fn decide(&mut self, who: usize, n: usize) {
        let request = self.requests[n].clone();
        if !request.waits || request.deleted {
            self.requests[n].holders.retain(|holder| *holder != who);
            return;
        }
        if request.plans >= PLANS {
            return self.answer(who, n, None);
        }
        self.requests[n].plans += 1;
        let hosts = 0..self.agents.len();
        if let Some(host) = hosts
            .clone()
            .find(|h| self.placement.free(*h) >= request.vcpus)
        {
            return self.claim(who, n, host);
        }
        if request.spot {
            return self.answer(who, n, None);
        }
        let best = hosts
            .filter_map(|host| Some((host, self.cheapest(who, host, request.vcpus)?)))
            .min_by_key(|(_, victims)| victims.len());
        match best {
            None => self.answer(who, n, None),
            Some((host, victims)) => self.preempt(who, n, host, &victims),
        }
    }

    /// There is room: one write of Placement.
    fn claim(&mut self, who: usize, n: usize, host: usize) {
        let (instance, vcpus) = (self.requests[n].instance, self.requests[n].vcpus);
        let held = self.placement.consumers.get(&instance);
        if held.is_some_and(|h| h.host == host) {
            // An earlier try whose answer was lost.
            return self.answer(who, n, Some(host));
        }
        let write = Write {
            consumer: instance,
            holds: Some((host, vcpus)),
            generation: None,
        };
        match self.placement.post(&[write]) {
            Answer::Done => self.answer(who, n, Some(host)),
            Answer::Conflict => self.decide(who, n),
            Answer::Lost => match self.placement.consumers.get(&instance) {
                Some(_) => self.answer(who, n, Some(host)),
                None => self.decide(who, n),
            },
        }
    }

    /// The fewest victims of a host that free enough, as this scheduler knows who is leaving.
    fn cheapest(&self, who: usize, host: usize, vcpus: u64) -> Option<Vec<Uuid>> {
        let leaving = &self.schedulers[who].leaving;
        let mut there: Vec<(u64, Uuid)> = self
            .instances
            .iter()
            .filter(|(id, i)| i.host == host && i.spot && !i.deleted && !leaving.contains(id))
            .filter(|(id, _)| self.placement.consumers.contains_key(id))
            .map(|(id, i)| (i.vcpus, *id))
            .collect();
        there.sort_unstable();
        let needed = vcpus.saturating_sub(self.placement.free(host));
        // The smallest one that is enough, else the largest until it is enough.
        if let Some((_, id)) = there.iter().find(|(size, _)| *size >= needed) {
            return Some(vec![*id]);
        }
        let mut freed = 0;
        let mut victims = Vec::new();
        for (size, id) in there.into_iter().rev() {
            if freed >= needed {
                break;
            }
            freed += size;
            victims.push(id);
        }
        (freed >= needed).then_some(victims)
    }

    fn preempt(&mut self, who: usize, n: usize, host: usize, victims: &[Uuid]) {
        let id = self.new_id();
        let record = self.record(id, n, host, victims);
        let owner = (who, self.schedulers[who].life);
        match self.ledger.insert(owner, &record) {
            Written::Updated(version) => {
                let name = self.schedulers[who].name.clone();
                let instance = self.requests[n].instance;
                self.tell(|s| {
                    let names: Vec<String> = victims.iter().map(|v| s.of(*v)).collect();
                    format!(
                        "{name} plans: {} on host-{host} for {}",
                        names.join(", "),
                        s.of(instance)
                    )
                });
                let driven = Driven {
                    version,
                    record,
                    caller: Some(n),
                    adopted_at: None,
                    pending: VecDeque::new(),
                };
                self.schedulers[who].leaving.extend(victims);
                self.schedulers[who].driven.insert(id, driven);
            }
            Written::VictimTaken => {
                self.schedulers[who].leaving = self.ledger.victims();
                self.decide(who, n);
            }
            _ => {
                // Nothing is written, nothing has happened: the message goes back to its queue.
                self.schedulers[who].rests = true;
                self.requests[n].plans -= 1;
                self.requests[n].holders.retain(|holder| *holder != who);
                self.queue.push_back(n);
            }
        }
    }

    /// What victims free beyond what is needed is still taken as long as they run: one of them goes on holding it in Placement, so that
    /// nobody else is given it before it is free.
    fn keep_surplus(&self, victims: &mut [Victim], host: usize, needed: u64) {
        let needed = needed.saturating_sub(self.placement.free(host));
        let sizes = victims.iter().filter_map(|v| amounts(&v.had));
        let freed: u64 = sizes.map(|(_, vcpus)| vcpus).sum();
        let surplus = freed.saturating_sub(needed);
        if surplus > 0
            && !self.breaks(Mutation::SurplusGivenAtOnce)
            && let Some(victim) = victims.first_mut()
        {
            victim.keeps = Some(holding(host, surplus, None));
        }
    }

    fn record(&mut self, id: Uuid, n: usize, host: usize, victims: &[Uuid]) -> Preemption {
        let name = self.agents[host].name.clone();
        let request = self.requests[n].clone();
        let at_once = self.at_once;
        let mut chosen = Vec::with_capacity(victims.len());
        for server in victims {
            let evacuation = EvacuationId(self.new_id());
            self.story.name(evacuation.0, "evacuation");
            let Some(held) = self.placement.consumers.get(server).copied() else {
                let what = "a victim was planned that holds nothing".to_owned();
                self.fail(Promise::NoVictimTooMany, what);
                continue;
            };
            chosen.push(Victim {
                server: ServerId(*server),
                evacuation,
                host: name.clone(),
                had: holding(host, held.vcpus, Some(held.generation)),
                generation: held.generation,
                keeps: None,
                behaviour: InterruptionBehaviour::Terminate,
                // The longest is longer than anybody waits for the room.
                grace: Seconds([0, 6, 15, 90][(server.as_u128() % 4) as usize]),
                flavor: "spot".to_owned(),
                launched_at: None,
                state: VictimState::Waiting,
            });
        }
        self.keep_surplus(&mut chosen, host, request.vcpus);
        Preemption {
            id,
            request_id: format!("req-{n}"),
            unique_id: format!("message-{n}"),
            planned_at: self.now,
            state: State::Planned,
            // Who answers is known to this world by who holds the message.
            answerer: None,
            reply_when: if at_once {
                ReplyWhen::AtOnce
            } else {
                ReplyWhen::RoomFree
            },
            answered: false,
            in_doubt: false,
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
            give_back_at: None,
        }
    }
}
