//! The database: what is durable. It applies a list of changes as a whole or not at all, and only
//! for the holder of the lease.

use ebbtide_model::record::{Change, OutboxMessage, REMEMBER_GONE, Snapshot};
use ebbtide_model::{
    BudgetScope, DisruptionBudget, Evacuation, EvacuationId, Flavor, FlavorId, GroupId, Host,
    Money, PricePoint, Seconds, Server, ServerGroup, ServerId, Timestamp,
};
use std::collections::BTreeMap;

/// Who may write.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lease {
    pub(crate) holder: Option<usize>,
    pub(crate) epoch: u64,
    pub(crate) expires_at: Timestamp,
}

/// What the next commits come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    Written,
    Failed,
    /// It is written, and the answer is lost.
    Unknown,
    /// The lease was taken over.
    Fenced,
}

/// Everything that is durable.
#[derive(Debug, Default)]
pub(crate) struct Database {
    pub(crate) hosts: BTreeMap<String, Host>,
    pub(crate) groups: BTreeMap<GroupId, ServerGroup>,
    pub(crate) budgets: BTreeMap<BudgetScope, DisruptionBudget>,
    /// Servers that are not gone.
    pub(crate) servers: BTreeMap<ServerId, Server>,
    /// Those that are, kept apart because they are many and nothing happens to them.
    pub(crate) ended_servers: BTreeMap<ServerId, Server>,
    /// Evacuations under way.
    pub(crate) active: BTreeMap<EvacuationId, Evacuation>,
    /// Evacuations that have ended. Identifiers count up, so the latest are last.
    pub(crate) ended: BTreeMap<EvacuationId, Evacuation>,
    pub(crate) outbox: Vec<OutboxMessage>,
    /// Where there is a market; elsewhere flavors come with requests only.
    pub(crate) flavors: BTreeMap<FlavorId, Flavor>,
    /// All prices that were ever published.
    pub(crate) prices: BTreeMap<FlavorId, BTreeMap<Timestamp, PricePoint>>,
    pub(crate) lease: Lease,
    pub(crate) disk_full: bool,
    /// A commit fails after so many that do not.
    pub(crate) fail_after: Option<u32>,
    /// A commit's answer is lost after so many.
    pub(crate) lose_after: Option<u32>,
    /// Broken on purpose: the database does not check the lease.
    pub(crate) unfenced: bool,
    /// What each commit changed: those who are active beside the one that wrote it follow that.
    pub(crate) log: Vec<Vec<Change>>,
}

fn countdown(counter: &mut Option<u32>) -> bool {
    match counter {
        None => false,
        Some(0) => {
            *counter = None;
            true
        }
        Some(n) => {
            *n -= 1;
            false
        }
    }
}

impl Database {
    /// What would become of a commit now, with the lease that is shown.
    pub(crate) fn judge(&mut self, lease: Option<(usize, u64)>) -> Commit {
        let stale = lease.is_some_and(|(who, epoch)| !self.is_led_by(who, epoch));
        if stale {
            return Commit::Fenced;
        }
        if self.disk_full || countdown(&mut self.fail_after) {
            return Commit::Failed;
        }
        if countdown(&mut self.lose_after) {
            return Commit::Unknown;
        }
        Commit::Written
    }

    /// Whether this is the present lease. Always true if the lease is not checked.
    pub(crate) fn is_led_by(&self, who: usize, epoch: u64) -> bool {
        self.unfenced || self.lease.holder == Some(who) && self.lease.epoch == epoch
    }

    /// Takes the lease if it is free by this clock.
    pub(crate) fn take_lease(&mut self, who: usize, now: Timestamp, ttl: Seconds) -> Option<u64> {
        if self.disk_full {
            return None;
        }
        let free = self.lease.holder.is_none()
            || self.lease.holder == Some(who)
            || self.lease.expires_at <= now;
        if !free {
            return None;
        }
        self.lease = Lease {
            holder: Some(who),
            epoch: self.lease.epoch + 1,
            expires_at: now.plus(ttl),
        };
        Some(self.lease.epoch)
    }

    /// Makes the lease last longer, if it is still the same.
    pub(crate) fn renew_lease(
        &mut self,
        who: usize,
        epoch: u64,
        now: Timestamp,
        ttl: Seconds,
    ) -> bool {
        let same = self.lease.holder == Some(who) && self.lease.epoch == epoch;
        if same && !self.disk_full {
            self.lease.expires_at = now.plus(ttl);
        }
        same
    }

    pub(crate) fn apply(&mut self, changes: &[Change]) {
        self.log.push(changes.to_vec());
        for change in changes {
            match change {
                Change::PutHost(host) => {
                    drop(self.hosts.insert(host.name.clone(), (**host).clone()));
                }
                Change::DeleteHost(name) => drop(self.hosts.remove(name)),
                Change::PutGroup(group) => drop(self.groups.insert(group.id, group.clone())),
                Change::DeleteGroup(id) => drop(self.groups.remove(id)),
                Change::PutBudget(b) => drop(self.budgets.insert(b.scope.clone(), b.clone())),
                Change::DeleteBudget(scope) => drop(self.budgets.remove(scope)),
                Change::PutServer(s) => {
                    let (to, from) = match s.status.is_gone() {
                        true => (&mut self.ended_servers, &mut self.servers),
                        false => (&mut self.servers, &mut self.ended_servers),
                    };
                    from.remove(&s.id);
                    to.insert(s.id, (**s).clone());
                }
                Change::PutEvacuation(e) => {
                    let (to, from) = match e.state.is_final() {
                        true => (&mut self.ended, &mut self.active),
                        false => (&mut self.active, &mut self.ended),
                    };
                    from.remove(&e.id);
                    to.insert(e.id, (**e).clone());
                }
                Change::Enqueue(message) => self.outbox.push(message.clone()),
                Change::Dequeue(id) => self.outbox.retain(|m| m.id != *id),
                Change::PutFlavor(f) => drop(self.flavors.insert(f.id, f.clone())),
                Change::PutPrice(p) => {
                    let line = self.prices.entry(p.flavor_id).or_default();
                    line.insert(p.at, p.clone());
                }
                // Decisions and past lives are read by people only; the world has no aggregates,
                // deletes no flavors, and restores no backups.
                Change::PutDecision(_)
                | Change::PutLife(_)
                | Change::PutRestoreMark(_)
                | Change::DeleteRestoreMark
                | Change::PutAggregate(_)
                | Change::DeleteAggregate(_)
                | Change::DeleteFlavor(_) => {}
            }
        }
    }

    /// A server, also one that is gone.
    pub(crate) fn server(&self, id: ServerId) -> Option<&Server> {
        self.servers
            .get(&id)
            .or_else(|| self.ended_servers.get(&id))
    }

    /// An evacuation, also one that has ended.
    pub(crate) fn evacuation(&self, id: EvacuationId) -> Option<&Evacuation> {
        self.active.get(&id).or_else(|| self.ended.get(&id))
    }

    /// The last price of each flavor, as the store reads it: the latest.
    pub(crate) fn last_prices(&self) -> Vec<PricePoint> {
        let lines = self.prices.values();
        let last = lines.filter_map(|line| line.last_key_value());
        last.map(|(_, point)| point.clone()).collect()
    }

    /// The last price of one.
    pub(crate) fn price_of(&self, flavor: FlavorId) -> Option<Money> {
        let last = self.prices.get(&flavor)?.last_key_value();
        last.map(|(_, point)| point.price)
    }

    /// What a scheduler reads that begins to lead.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut hosts: Vec<Host> = self.hosts.values().cloned().collect();
        hosts.sort_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
        let mut servers: Vec<Server> = self.servers.values().cloned().collect();
        servers.sort_by_key(|s| (s.created_at, s.id));
        let mut gone: Vec<(ServerId, Timestamp)> = self
            .ended_servers
            .values()
            .map(|s| (s.id, s.ended_at.unwrap_or(s.created_at)))
            .collect();
        gone.sort_by_key(|(id, at)| (*at, *id));
        let last = gone.last().map(|(_, at)| *at).unwrap_or_default();
        gone.retain(|(_, at)| *at >= last.minus(REMEMBER_GONE));
        // As the service reads them: those under way, and those that were claimed lately.
        let oldest = self.ended.values().next_back();
        let oldest = oldest.map(|e| e.claimed_at.minus(REMEMBER_GONE));
        let lately = self.ended.values().rev();
        let lately = lately.take_while(|e| Some(e.claimed_at) >= oldest);
        let mut evacuations: Vec<Evacuation> =
            self.active.values().chain(lately).cloned().collect();
        evacuations.sort_by_key(|e| (e.claimed_at, e.id));
        Snapshot {
            prices: self.last_prices(),
            hosts,
            aggregates: Vec::new(),
            flavors: self.flavors.values().cloned().collect(),
            groups: self.groups.values().cloned().collect(),
            budgets: self.budgets.values().cloned().collect(),
            servers,
            gone,
            evacuations,
            outbox: self.outbox.clone(),
            restored: None,
        }
    }
}
