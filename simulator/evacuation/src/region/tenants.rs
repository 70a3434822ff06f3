//! Tenants: they ask, hear nothing and ask again, change their minds, release early, and delete.

use super::market::Bids;
use super::scheduler::IDS;
use super::world::RegionWorld;
use crate::Mutation;
use crate::fault::FaultKind;
use crate::random::WorldRng;
use crate::violation::Invariant;
use ebbtide_model::{
    Decision, Flavor, FlavorId, PlacementRequest, ReclaimDeadline, ReclaimTerms, Seconds, ServerId,
    ServerStatus, Timestamp,
};
use ebbtide_region::{
    CountingIds, CreateServers, CreatedServers, DeleteServer, DisableHost, EnableHost, Ids,
    ReclaimHost, ReleaseServer, ReturnHost,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use uuid::Uuid;

/// Maximum number of times that a tenant sends a request.
const TRIES: u32 = 4;
/// How long a tenant repeats a request.
const PATIENCE: Seconds = Seconds(300);

#[derive(Debug)]
pub(super) struct TenantRequest {
    create: CreateServers,
    /// How many servers it asks for.
    pub(super) count: usize,
    /// Servers that were made for it, under whatever identifiers.
    pub(super) made: BTreeSet<ServerId>,
    tries: u32,
    asked_at: Timestamp,
}

/// What tenants remember.
#[derive(Debug)]
pub(super) struct Tenants {
    pub(super) requests: Vec<TenantRequest>,
    /// Which request a server belongs to.
    pub(super) of: BTreeMap<ServerId, usize>,
    /// Requests without an answer.
    unanswered: VecDeque<usize>,
    /// The next answer is lost.
    pub(super) lose_answer: bool,
    chance: WorldRng,
    has_lifetimes: bool,
    /// What they offer, where there is a market.
    bids: Option<Bids>,
    flavors: BTreeMap<(u32, u32, bool), Flavor>,
}

/// From this seed on some preemptible flavors have a maximum lifetime.
pub const LIFETIMES_FROM: u64 = 10_000_000;

impl Tenants {
    pub(super) fn new(chance: WorldRng, seed: u64) -> Self {
        Self {
            has_lifetimes: seed >= LIFETIMES_FROM,
            bids: super::market::market_of(seed).map(|_| Bids::new(seed)),
            requests: Vec::new(),
            of: BTreeMap::new(),
            unanswered: VecDeque::new(),
            lose_answer: false,
            chance,
            flavors: BTreeMap::new(),
        }
    }

    /// A flavor with VCPUs, 1000 MiB for each, and sometimes a disk.
    fn flavor(&mut self, vcpus: u32, kind: u32, spot: bool) -> Flavor {
        let kind = if spot { kind % 12 } else { 0 };
        let made = self.flavors.entry((vcpus, kind, spot)).or_insert_with(|| {
            let mut extra_specs = BTreeMap::new();
            if spot {
                let ending = ["terminate", "terminate", "stop", "hibernate"][kind as usize % 4];
                let grace = ["0", "6", "15"][kind as usize % 3];
                let protected = if kind == 11 { "10" } else { "0" };
                for (key, value) in [
                    ("ebbtide:preemptible", "true"),
                    ("ebbtide:interruption", ending),
                    ("ebbtide:grace_seconds", grace),
                    ("ebbtide:protected_seconds", protected),
                ] {
                    extra_specs.insert(key.to_owned(), value.to_owned());
                }
                let lifetime = ["60", "90", ""][kind as usize / 4 % 3];
                if self.bids.is_some() {
                    let key = "ebbtide:price_per_hour".to_owned();
                    extra_specs.insert(key, Bids::base(vcpus).to_string());
                }
                if self.has_lifetimes && !lifetime.is_empty() {
                    let key = "ebbtide:max_lifetime_seconds".to_owned();
                    extra_specs.insert(key, lifetime.to_owned());
                }
            }
            let name = format!("{}{vcpus}-{kind}", if spot { "spot" } else { "normal" });
            Flavor {
                id: FlavorId(Uuid::new_v5(&Uuid::nil(), name.as_bytes())),
                name,
                vcpus,
                ram_mb: 1000 * vcpus,
                disk_gb: if kind % 4 >= 2 { 1 } else { 0 },
                extra_specs,
            }
        });
        made.clone()
    }
}

impl RegionWorld {
    /// A tenant asks for servers.
    pub(super) fn create(&mut self, a: u32, b: u32, spot: bool) {
        if !spot {
            self.make_way(b);
        }
        let vcpus = 1 + a % 4;
        let flavor = self.tenants.flavor(vcpus, a / 4, spot);
        let count = [1, 1, 1, 1, 2, 3][b as usize % 6];
        let kind = if spot { "spot" } else { "normal" };
        let mut server_ids = Vec::with_capacity(count);
        for _ in 0..count {
            let id = ServerId(self.ids.next());
            self.event_log.name(id.0, kind);
            server_ids.push(id);
        }
        let mut max_price = None;
        if spot && let Some(bids) = &mut self.tenants.bids {
            max_price = bids.next(vcpus);
            self.register_flavor(&flavor);
        }
        let grouped = !spot && (b / 6).is_multiple_of(8);
        let request = PlacementRequest {
            server_ids,
            project_id: if spot { "cattle" } else { "pets" }.to_owned(),
            flavor,
            availability_zone: None,
            group_id: self.group.filter(|_| grouped),
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 0,
        };
        let create = CreateServers {
            quota: None,
            max_price,
            name: "vm".to_owned(),
            request,
            external: (b / 48).is_multiple_of(25),
        };
        let asked_at = self.now;
        self.tenants.requests.push(TenantRequest {
            create,
            count,
            made: BTreeSet::new(),
            tries: 0,
            asked_at,
        });
        self.ask(self.tenants.requests.len() - 1);
    }

    /// Owners give up normal servers before they fill the region: a region without preemptible ones
    /// has nothing to tell. What is in error goes, too.
    fn make_way(&mut self, b: u32) {
        let capacity: u64 = self.agents.iter().map(|a| a.hypervisor.vcpus()).sum();
        let mut normal = 0;
        let mut settled = Vec::new();
        let mut failed = Vec::new();
        let mut kept = Vec::new();
        for server in self.database.servers.values() {
            match server.status {
                ServerStatus::Error => failed.push(server.id),
                ServerStatus::Stopped | ServerStatus::Hibernated => kept.push(server.id),
                ServerStatus::Active | ServerStatus::Reserved if !server.is_preemptible() => {
                    normal += u64::from(server.flavor.vcpus);
                    settled.push(server.id);
                }
                _ => {}
            }
        }
        let crowded = normal * 3 > capacity;
        // Who has been away for long is given up; the others shall come back.
        let many = kept.len() > 4;
        for (ids, due) in [(settled, crowded), (failed, true), (kept, many)] {
            if due && let Some(id) = ids.get(b as usize % ids.len().max(1)).copied() {
                self.log_delete(id);
                self.command(DeleteServer(id));
            }
        }
    }

    /// Asks (again) for the servers of a request.
    fn ask(&mut self, place: usize) {
        let Some(who) = self.answers() else {
            self.tenants.unanswered.push_back(place);
            return;
        };
        let again = self.tenants.requests[place].tries > 0;
        self.tenants.requests[place].tries += 1;
        if again && self.breaks(Mutation::RequestWithoutKey) {
            let n = self.tenants.requests[place].count;
            let ids: Vec<ServerId> = (0..n).map(|_| ServerId(self.ids.next())).collect();
            self.tenants.requests[place].create.request.server_ids = ids;
        }
        let create = self.tenants.requests[place].create.clone();
        for id in &create.request.server_ids {
            self.tenants.of.insert(*id, place);
        }
        self.log(|s| {
            let names: Vec<String> = create
                .request
                .server_ids
                .iter()
                .map(|id| s.of(id.0))
                .collect();
            let again = if again { ", again" } else { "" };
            format!(
                "a tenant asks for {} ({} VCPU each{}){again}",
                names.join(", "),
                create.request.flavor.vcpus,
                if create.request.group_id.is_some() {
                    ", in a group"
                } else {
                    ""
                }
            )
        });
        // Every other request is decided before its turn, on what the scheduler knew last; what
        // comes of that cannot be foretold here.
        let early = self.shared && place.is_multiple_of(2);
        let ready = !early && (!self.shared || self.catch_up(who));
        let foreseen = match ready {
            true => self.foresee(who, &create.request),
            false => None,
        };
        let inputs = vec![create];
        let asked = match early {
            true => self.turn(who, inputs, true),
            false => self.input(who, inputs),
        };
        if let (Some(foreseen), Ok(replies)) = (foreseen, &asked)
            && let Some(Ok(CreatedServers::New { decision, .. })) = replies.first()
        {
            self.compare(&foreseen, decision);
        }
        let answered = match asked {
            Ok(_) if self.tenants.lose_answer => {
                self.tenants.lose_answer = false;
                self.fault(FaultKind::AnswerLost, || {
                    "the answer does not reach the tenant".to_owned()
                });
                false
            }
            Ok(_) => true,
            Err(_) => false,
        };
        if !answered && self.tenants.requests[place].tries < TRIES {
            self.tenants.unanswered.push_back(place);
        }
    }

    /// What would be decided now, asked without asking for it.
    fn foresee(&mut self, who: usize, request: &PlacementRequest) -> Option<Decision> {
        let clock = self.schedulers[who].clock(self.now);
        let region = self.schedulers[who].region.as_mut()?;
        // Identifiers of its own: a question must not change what comes after it.
        let mut ids = CountingIds::after(IDS);
        region.what_if(clock, &mut ids, request).ok()
    }

    /// The same state, request and time: the same decision, with the same reasons.
    fn compare(&mut self, foreseen: &Decision, made: &Decision) {
        let mut again = made.explanation.clone();
        // It comes from the decision's identifier, and there is no chance in this policy.
        again.seed = foreseen.explanation.seed;
        if foreseen.outcome != made.outcome || foreseen.explanation != again {
            let what = "a request was decided otherwise than had just been foretold".to_owned();
            self.fail(Invariant::Deterministic, what);
        }
    }

    /// A tenant without an answer repeats its request.
    pub(super) fn retry_requests(&mut self) {
        if self.answers().is_some()
            && self.tenants.chance.percent(60)
            && let Some(place) = self.tenants.unanswered.pop_front()
        {
            // The region remembers gone servers for ten minutes. Tenants stop repeating earlier
            // than that.
            let patient = self.tenants.requests[place].asked_at.plus(PATIENCE) > self.now;
            if patient {
                self.ask(place);
            }
        }
    }

    pub(super) fn delete(&mut self, a: u32, b: u32) {
        let id = match b % 3 {
            0 => self.some_server(a, |s| s == ServerStatus::Waiting),
            _ => self.some_server(a, |s| !s.is_gone() && s != ServerStatus::Deleting),
        };
        if let Some(id) = id {
            self.log_delete(id);
            self.command(DeleteServer(id));
        }
    }

    pub(super) fn log_delete(&mut self, id: ServerId) {
        self.log(|s| format!("the owner deletes {}", s.of(id.0)));
    }

    pub(super) fn release(&mut self, a: u32) {
        if let Some(id) = self.some_server(a, |s| s == ServerStatus::Evacuating) {
            self.log(|s| format!("the owner of {} needs no more time", s.of(id.0)));
            self.command(ReleaseServer(id));
        }
    }

    pub(super) fn toggle_host(&mut self, a: u32, b: u32) {
        let host = self.host_of(a);
        let name = self.agents[host].name.clone();
        match b % 6 {
            0 => {
                self.log(|_| format!("{name} is disabled"));
                self.command(DisableHost {
                    name,
                    reason: "why not".to_owned(),
                });
            }
            3 => {
                self.log(|_| format!("{name} is reclaimed"));
                let terms = ReclaimTerms {
                    owner: "batch".to_owned(),
                    reason: "a job".to_owned(),
                    deadline: ReclaimDeadline::After(Seconds(1 + b % 90)),
                    max_cost: None,
                };
                self.command(ReclaimHost { name, terms });
            }
            1 | 4 => self.command(EnableHost(name)),
            _ => {
                self.log(|_| format!("{name} is returned"));
                self.command(ReturnHost {
                    name,
                    keep_disabled: false,
                });
            }
        }
    }
}
