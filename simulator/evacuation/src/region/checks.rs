//! The promises, held against every transaction.

use super::world::RegionWorld;
use crate::violation::Invariant;
use ebbtide_evacuation::Progress;
use ebbtide_model::message::{Body, Message};
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_model::{
    Evacuation, EvacuationCause, EvacuationId, EvacuationState, ResourceClass, Server, ServerId,
    ServerStatus,
};
use std::collections::{BTreeMap, BTreeSet};

/// The fault of what a start that was given up may have left (`docs/operate/evacuation.md`).
const ORPHANED_START: &str = "EB-FAULT-004";

/// Whether a server takes its room. One that had been stopped or hibernated before its owner
/// deleted it takes at most its disk.
pub(super) fn holds_room(server: &Server) -> bool {
    let ended = server.status == ServerStatus::Deleting && server.ended_at.is_some();
    server.status.holds_room() && !ended
}

impl RegionWorld {
    /// What a transaction must not do to what is durable already.
    pub(super) fn check_before(&mut self, changes: &[Change]) {
        self.check_comebacks(changes);
        self.check_market(changes);
        self.check_transitions(changes);
        for change in changes {
            match change {
                Change::PutServer(server) => self.check_server(server),
                Change::PutEvacuation(evacuation) => self.check_evacuation(evacuation, changes),
                Change::PutDecision(decision) => self.check_decision(decision),
                _ => {}
            }
        }
    }

    fn check_server(&mut self, server: &Server) {
        let before = self.database.server(server.id).map(|s| s.status);
        // A place that was only reserved, and given back, may be asked for again by the same hand;
        // and what a start that was given up may have left is looked after again whenever it is
        // heard of again.
        let remains = server
            .fault
            .as_ref()
            .is_some_and(|f| f.code == ORPHANED_START);
        let again = before.is_some_and(ServerStatus::is_gone) && !server.status.is_gone();
        if again && !server.external && !remains {
            self.fail(
                Invariant::ExactlyOnce,
                format!("a server that was gone is {} again", server.status),
            );
        }
        if server.status == ServerStatus::Error && server.fault.is_none() {
            self.fail(
                Invariant::Explained,
                "a server is in error without a reason".to_owned(),
            );
        }
        if let Some(place) = self.tenants.of.get(&server.id).copied() {
            let request = &mut self.tenants.requests[place];
            request.made.insert(server.id);
            if request.made.len() > request.count {
                let what = format!(
                    "{} servers were made for a request for {}",
                    request.made.len(),
                    request.count
                );
                self.fail(Invariant::ExactlyOnce, what);
            }
        }
    }

    /// Checks that every evacuation goes only where the protocol of one victim allows.
    fn check_transitions(&mut self, changes: &[Change]) {
        let mut written: BTreeMap<EvacuationId, Progress> = BTreeMap::new();
        for change in changes {
            let Change::PutEvacuation(evacuation) = change else {
                continue;
            };
            let id = evacuation.id;
            let stored = self.database.evacuation(id).map(Progress::of);
            let before = written.get(&id).copied().or(stored);
            let before = before.unwrap_or(Progress::CLAIMED);
            let after = Progress::of(evacuation);
            if !before.may_become(after) {
                let what = format!("an evacuation goes from {before:?} to {after:?}");
                self.fail(Invariant::ExactlyOnce, what);
            }
            written.insert(id, after);
        }
    }

    fn check_evacuation(&mut self, evacuation: &Evacuation, changes: &[Change]) {
        let before = self.database.evacuation(evacuation.id);
        let (was, spared) = before.map_or((None, false), |e| (Some(e.state), e.spare_requested));
        if was.is_none() {
            self.check_chosen(evacuation, changes);
        }
        let over = matches!(was, Some(EvacuationState::Evacuated));
        if over && evacuation.state != EvacuationState::Evacuated {
            self.fail(
                Invariant::ExactlyOnce,
                "an evacuation that was over goes on".to_owned(),
            );
        }
        let explained = evacuation.reason.as_ref().is_some_and(|r| !r.is_empty());
        let asks = evacuation.spare_requested || evacuation.state == EvacuationState::Failed;
        if asks && !explained {
            self.fail(
                Invariant::Explained,
                format!("an evacuation is {} without a reason", evacuation.state),
            );
        }
        if evacuation.spare_requested && !spared && was.is_none_or(|s| !s.is_final()) {
            let spares = |message: &OutboxMessage| {
                message.host == evacuation.host
                    && matches!(
                        Message::from_bytes(&message.body).map(|m| m.body),
                        Ok(Body::Spare(spare)) if spare.evacuation_id == evacuation.id
                    )
            };
            let said = changes
                .iter()
                .any(|c| matches!(c, Change::Enqueue(m) if spares(m)));
            if !said {
                self.fail(
                    Invariant::NoEndForNothing,
                    "a victim is to be spared, and its agent is not told".to_owned(),
                );
            }
        }
    }

    /// Checks who was chosen: a preemptible victim, for a normal preemptor, and not a second time
    /// while its first evacuation is under way. So a preemptor is never a victim itself, and chains
    /// of preemptions cannot form a cycle.
    fn check_chosen(&mut self, evacuation: &Evacuation, changes: &[Change]) {
        let kind = |id: ServerId| {
            let written = changes.iter().rev().find_map(|change| match change {
                Change::PutServer(server) if server.id == id => Some(server.is_preemptible()),
                _ => None,
            });
            written.or_else(|| self.database.server(id).map(Server::is_preemptible))
        };
        let for_whom = evacuation.preemptor_id.map(kind);
        let right = kind(evacuation.victim_id) == Some(true)
            && match evacuation.cause {
                EvacuationCause::Preemption => for_whom == Some(Some(false)),
                EvacuationCause::MaxLifetime => self.has_lived_long(evacuation),
                EvacuationCause::OutOfBid => self.leaves_out_of_bid(evacuation, changes),
                EvacuationCause::Reclaim => self.is_reclaimed(&evacuation.host, changes),
                // Only OpenStack mode keeps capacity free ahead of demand.
                EvacuationCause::Headroom => false,
            };
        let over = |id: EvacuationId| {
            changes
                .iter()
                .any(|c| matches!(c, Change::PutEvacuation(e) if e.id == id && e.state.is_final()))
        };
        let mut others = self.database.active.values();
        let twice = others
            .any(|e| e.id != evacuation.id && e.victim_id == evacuation.victim_id && !over(e.id));
        if !right {
            let what =
                "a server that is not preemptible is evicted, or one for a preemptible request"
                    .to_owned();
            self.fail(Invariant::NoEndForNothing, what);
        } else if twice {
            let what = "a victim is chosen while it is leaving already".to_owned();
            self.fail(Invariant::NoVictimTooMany, what);
        }
    }

    /// True if an owner has the host, once these changes are durable.
    fn is_reclaimed(&self, host: &str, changes: &[Change]) -> bool {
        let written = changes.iter().rev().find_map(|change| match change {
            Change::PutHost(written) if written.name == host => Some(&**written),
            _ => None,
        });
        let known = written.or_else(|| self.database.hosts.get(host));
        known.is_some_and(|host| host.reclaim.is_some())
    }

    /// What must hold once a transaction is durable.
    pub(super) fn check_after(&mut self, changes: &[Change]) {
        let mut touched: BTreeSet<&str> = BTreeSet::new();
        for change in changes {
            match change {
                Change::PutServer(server) => touched.extend(server.host.as_deref()),
                // Only notices name an evacuation.
                Change::Enqueue(message) => {
                    if let Some(id) = message.evacuation_id {
                        self.check_notice(message, id, changes);
                    }
                }
                _ => {}
            }
        }
        for host in touched {
            self.check_room(host);
        }
        self.check_room_of_comebacks();
    }

    /// Checks that a victim gets its notice only after the claim on its capacity is durable.
    fn check_notice(&mut self, message: &OutboxMessage, id: EvacuationId, changes: &[Change]) {
        // A transaction may withdraw a message that it has added. Such a message is never sent.
        if !self.database.outbox.iter().any(|m| m.id == message.id) {
            return;
        }
        let Some(evacuation) = self.database.evacuation(id) else {
            return self.fail(
                Invariant::NoEndForNothing,
                "a notice of an evacuation that is not durable".to_owned(),
            );
        };
        let preemptor = evacuation
            .preemptor_id
            .and_then(|id| self.database.server(id));
        let claims = match evacuation.cause {
            EvacuationCause::Preemption => preemptor.is_some_and(|p| {
                p.status == ServerStatus::Waiting && p.host.as_deref() == Some(&message.host)
            }),
            EvacuationCause::MaxLifetime | EvacuationCause::OutOfBid => true,
            EvacuationCause::Headroom => false,
            EvacuationCause::Reclaim => self.is_reclaimed(&message.host, &[]),
        };
        let told = Message::from_bytes(&message.body).map(|m| m.body);
        let hurried =
            matches!(&told, Ok(Body::Notice(notice)) if notice.grace_seconds < evacuation.grace);
        if hurried {
            let what = "a notice gives less time than the victim was promised".to_owned();
            return self.fail(Invariant::NoEndForNothing, what);
        }
        let written = changes
            .iter()
            .any(|c| matches!(c, Change::PutEvacuation(e) if e.id == id));
        if !claims || evacuation.state.is_final() || evacuation.spare_requested || !written {
            self.fail(
                Invariant::NoEndForNothing,
                "a notice without a claim on the room".to_owned(),
            );
        }
    }

    /// The time of its notice has come: its lifetime less its grace period is over, by the clock of
    /// a scheduler, which may be wrong.
    fn has_lived_long(&self, evacuation: &Evacuation) -> bool {
        let victim = self.database.server(evacuation.victim_id);
        let lifetime = victim.and_then(|v| v.flavor.properties().ok()?.max_lifetime);
        let launched = victim.and_then(|v| v.launched_at);
        let (Some(lifetime), Some(launched)) = (lifetime, launched) else {
            return false;
        };
        evacuation.claimed_at.plus(evacuation.grace) >= launched.plus(lifetime)
    }

    /// What is given on a host fits, now and once everybody has left who is leaving.
    fn check_room(&mut self, host: &str) {
        let place = self.agents.iter().position(|a| a.name == host);
        let Some(place) = place.filter(|place| !self.liars[*place]) else {
            return;
        };
        // Whole classes of servers by what they take: VCPUs and memory go together in these worlds.
        let class = ResourceClass::vcpu();
        let inventory = &self.agents[place].hypervisor.inventory;
        let capacity = inventory.get(&class).map_or(0, |i| i.capacity());
        let (mut now, mut later) = (0, 0);
        for server in self.database.servers.values() {
            if server.host.as_deref() != Some(host) || !holds_room(server) {
                continue;
            }
            let takes = u64::from(server.flavor.vcpus);
            let spared = server
                .evacuation_id
                .and_then(|id| self.database.evacuation(id))
                .is_some_and(|e| e.spare_requested);
            match server.status {
                ServerStatus::Waiting => later += takes,
                ServerStatus::Deleting => now += takes,
                ServerStatus::Evacuating if !spared => now += takes,
                _ => {
                    now += takes;
                    later += takes;
                }
            }
        }
        if now > capacity || later > capacity {
            self.fail(
                Invariant::NoRoomTwice,
                format!("{host}: of {capacity} VCPUs {now} are given now, and {later} once all have left who are leaving"),
            );
        }
    }

    /// The region agrees with itself and with the database.
    pub(super) fn check_region(&mut self, who: usize) {
        self.check_prices(who);
        let Some(region) = &self.schedulers[who].region else {
            return;
        };
        if let Err(what) = region.check_consistency() {
            return self.fail(Invariant::MemoryIsDurable, what);
        }
        let memory: BTreeMap<ServerId, &Server> = region.servers().map(|s| (s.id, s)).collect();
        let durable = self.database.servers.values();
        let durable: BTreeMap<ServerId, &Server> = durable.map(|s| (s.id, s)).collect();
        if memory != durable {
            let differs = memory
                .iter()
                .find(|(id, server)| durable.get(id) != Some(server))
                .map(|(id, server)| (*id, format!("{:?}", server.status)))
                .or_else(|| {
                    durable
                        .iter()
                        .find(|(id, _)| !memory.contains_key(id))
                        .map(|(id, _)| (*id, "unknown".to_owned()))
                });
            let what =
                format!("a server is something else in memory than in the database: {differs:?}");
            return self.fail(Invariant::MemoryIsDurable, what);
        }
        let active: BTreeSet<EvacuationId> = region.active_evacuations().collect();
        let durable: BTreeSet<EvacuationId> = self.database.active.keys().copied().collect();
        if active != durable {
            self.fail(
                Invariant::MemoryIsDurable,
                format!(
                    "{} evacuations are under way in memory, {} in the database",
                    active.len(),
                    durable.len()
                ),
            );
        }
    }
}
