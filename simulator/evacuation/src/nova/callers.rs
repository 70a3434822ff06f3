//! Callers: Nova's conductor asks for a place and waits for the answer, or goes away; instances are
//! started where the answer says.

use super::world::{NovaWorld, WorldInstance};
use crate::violation::Invariant;
use ebbtide_model::{ResourceClass, Resources, Seconds, ServerId, Timestamp};
use ebbtide_openstack::NewClaim;
use uuid::Uuid;

/// How long a caller waits for its answer.
const PATIENCE: Seconds = Seconds(90);

#[derive(Debug, Clone)]
pub(super) struct CallerRequest {
    pub(super) instance: Uuid,
    pub(super) vcpus: u64,
    pub(super) spot: bool,
    /// The caller listens for the answer.
    pub(super) waits: bool,
    /// Its owner has deleted the instance meanwhile.
    pub(super) deleted: bool,
    gives_up_at: Timestamp,
    /// Schedulers that have the message and have not acknowledged it.
    pub(super) holders: Vec<usize>,
    /// The first answer that the caller heard: where, or that there is no room.
    pub(super) answer: Option<Option<usize>>,
    /// It runs, or ran.
    pub(super) started: bool,
    /// How often it was planned.
    pub(super) plans: u32,
    /// A scheduler may have begun with it before.
    pub(super) redelivered: bool,
    /// Claims of which it is not known whether Placement has taken them.
    pub(super) doubtful: Vec<NewClaim>,
}

impl CallerRequest {
    /// One delivery of the message is acknowledged, or given back.
    pub(super) fn drop_holder(&mut self, who: usize) {
        if let Some(at) = self.holders.iter().position(|holder| *holder == who) {
            self.holders.remove(at);
        }
    }

    /// What Nova's databases say: whether anybody needs the place still.
    pub(super) fn is_open(&self) -> bool {
        !self.deleted && self.answer.is_none()
    }
}

impl NovaWorld {
    /// A caller requests a host for a new instance.
    pub(super) fn ask(&mut self, a: u32, b: u32, spot: bool) {
        if !spot {
            self.make_way(b);
        }
        let instance = self.new_id();
        self.event_log
            .name(instance, if spot { "spot" } else { "normal" });
        let vcpus = 1 + u64::from(a % 4);
        let gives_up_at = self.now.plus(Seconds(PATIENCE.0 / 3 * (1 + b % 3)));
        self.requests.push(CallerRequest {
            instance,
            vcpus,
            spot,
            waits: true,
            deleted: false,
            gives_up_at,
            holders: Vec::new(),
            answer: None,
            started: false,
            plans: 0,
            redelivered: false,
            doubtful: Vec::new(),
        });
        let n = self.requests.len() - 1;
        self.of.insert(instance, n);
        self.unsettled.insert(n);
        self.queue.push_back(n);
        self.log(|s| format!("a place is asked for: {} ({vcpus} VCPU)", s.of(instance)));
    }

    /// Owners give up normal instances before they fill the cloud: a cloud without preemptible ones
    /// has nothing to tell.
    fn make_way(&mut self, b: u32) {
        let capacity: u64 = self.placement.capacity.iter().sum();
        let normal = self.instances.iter().filter(|(_, i)| !i.spot);
        let normal: Vec<(Uuid, u64)> = normal.map(|(id, i)| (*id, i.vcpus)).collect();
        let used: u64 = normal.iter().map(|(_, vcpus)| vcpus).sum();
        if used * 3 > capacity
            && let Some((id, _)) = normal.get(b as usize % normal.len().max(1))
            && let Some(n) = self.of.get(id).copied()
        {
            self.remove(n);
        }
    }

    /// The caller hears an answer; only the first counts.
    pub(super) fn answer(&mut self, who: usize, request: usize, place: Option<usize>) {
        let name = self.schedulers[who].name.clone();
        let asked = &mut self.requests[request];
        asked.drop_holder(who);
        if !asked.waits || asked.answer.is_some() {
            return;
        }
        asked.answer = Some(place);
        asked.waits = false;
        let instance = asked.instance;
        self.log(|s| match place {
            Some(host) => format!("{name}: {} goes to host-{host}", s.of(instance)),
            None => format!("{name}: no valid host for {}", s.of(instance)),
        });
        if place.is_some() && !self.at_once {
            self.check_answer(request);
        }
        self.start_who_may();
    }

    /// Checks that Placement holds the allocations of an instance whose caller gets a host.
    fn check_answer(&mut self, request: usize) {
        let instance = self.requests[request].instance;
        let held = self.placement.consumers.contains_key(&instance);
        if !held && !self.requests[request].deleted {
            let what = "a place is answered that Placement does not have".to_owned();
            self.fail(Invariant::NoRoomTwice, what);
        }
    }

    /// Compute hosts start who has a place. Where the answer went at once they wait until the room
    /// is there.
    pub(super) fn start_who_may(&mut self) {
        let unsettled: Vec<usize> = self.unsettled.iter().copied().collect();
        for n in unsettled {
            let request = &self.requests[n];
            let placed = matches!(request.answer, Some(Some(_)));
            if !request.waits && (!placed || request.started || request.deleted) {
                self.unsettled.remove(&n);
                continue;
            }
            let (Some(Some(host)), false, false) =
                (request.answer, request.started, request.deleted)
            else {
                continue;
            };
            let (instance, vcpus, spot) = (request.instance, request.vcpus, request.spot);
            let takes = takes(vcpus);
            let lifetime = self.lifetime_of(instance, spot);
            let at_once = self.at_once;
            let now = self.now;
            let hypervisor = &mut self.base.agents[host].hypervisor;
            if at_once && !hypervisor.fits(&takes, ServerId(instance)) {
                continue;
            }
            hypervisor.boot(ServerId(instance), takes, now);
            if let Some((promise, what)) = hypervisor.broken.take() {
                self.fail(promise, what);
            }
            self.requests[n].started = true;
            self.instances.insert(
                instance,
                WorldInstance {
                    host,
                    vcpus,
                    spot,
                    since: now,
                    lifetime,
                },
            );
            self.log(|s| format!("host-{host}: {} runs", s.of(instance)));
        }
    }

    /// An owner deletes an instance, wherever it is in its life.
    pub(super) fn delete(&mut self, a: u32) {
        let place = a as usize % self.instances.len().max(1);
        let alive = self.instances.keys().nth(place);
        if let Some(n) = alive.and_then(|id| self.of.get(id)).copied() {
            self.remove(n);
        }
    }

    /// Nova deletes an instance: its guest, and what it holds.
    pub(super) fn remove(&mut self, n: usize) {
        let id = self.requests[n].instance;
        self.requests[n].deleted = true;
        self.log(|s| format!("the owner deletes {}", s.of(id)));
        if let Some(instance) = self.instances.remove(&id) {
            let hypervisor = &mut self.base.agents[instance.host].hypervisor;
            hypervisor.guests.remove(&ServerId(id));
        }
        // Nova's API deletes the allocations of a server that is being scheduled at once, whichever
        // scheduler is making room for it.
        self.placement.delete(id);
    }

    pub(super) fn callers_lose_patience(&mut self) {
        let now = self.now;
        let unsettled: Vec<usize> = self.unsettled.iter().copied().collect();
        for n in unsettled {
            if self.requests[n].waits && self.requests[n].gives_up_at <= now {
                self.requests[n].waits = false;
                let id = self.requests[n].instance;
                self.log(|s| {
                    format!(
                        "the caller that asked for {} does not wait any more",
                        s.of(id)
                    )
                });
            }
        }
    }
}

/// What an instance takes.
pub(super) fn takes(vcpus: u64) -> Resources {
    let mut takes = Resources::new();
    // A handful of VCPUs is within all bounds.
    let _ = takes.set(ResourceClass::vcpu(), vcpus);
    takes
}
