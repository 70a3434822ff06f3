//! Which member starts on which node, and how many servers of each type there should be.
//!
//! A member gets a server of the type on which it costs least in expectation (price times expected
//! running time times the part of the server that it has; bathtub, section 4.1). An aged server is
//! used if the reuse rule keeps it for the member (section 4.2): of those that are kept the oldest,
//! so that young ones are left for long members. If there is none, the type gets one more server.
//! A member whose deadline or waiting limit demands it gets an on-demand server.

use crate::book::{LengthEstimate, WorkId};
use crate::running_time::{RunningTimeQuery, RunningTimes};
use crate::settings::{BatchPolicy, ServerType, millis};
use crate::work::MemberId;

/// A member that needs a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Need {
    pub work: WorkId,
    pub member: MemberId,
    /// Processors.
    pub cpus: u32,
    /// Memory, MB.
    pub memory_mb: u64,
    /// Work that is left.
    pub left: LengthEstimate,
    /// Work that is saved, milliseconds.
    pub from: i64,
    /// How long a checkpoint takes, milliseconds; `None` for a member that cannot be saved.
    pub checkpoint: Option<i64>,
    /// Until when it has to be done, milliseconds.
    pub deadline: Option<i64>,
    /// The most that is paid for an hour of a preemptible server, millionths.
    pub max_price: Option<u64>,
    /// Only an on-demand server will do.
    pub on_demand: bool,
    /// A server is to be there for it, and it is not started yet.
    pub only_ask: bool,
}

/// A node with a server.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeView {
    pub name: String,
    /// The place of its type.
    pub ty: usize,
    /// Whether it takes members now.
    pub takes_jobs: bool,
    /// Whether it is to stay. One that stays and takes no members is about to.
    pub stays: bool,
    /// The age of its server, milliseconds.
    pub age: i64,
    /// Processors that no attempt has.
    pub free_cpus: u32,
    /// Memory that no attempt has, MB.
    pub free_memory: u64,
    /// Since when nothing runs there, milliseconds; `None` while something runs.
    pub idle_since: Option<i64>,
}

/// What is known of a type now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeView {
    /// What an hour costs now, millionths.
    pub hourly: u64,
    /// Servers that come up.
    pub coming: u32,
    /// Whether idle servers are being given back at this moment.
    pub draining: bool,
    /// How long its servers take to come up, milliseconds.
    pub boot: i64,
}

/// What is to be done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Placement {
    /// Places of needs and of nodes: start this there.
    pub starts: Vec<(usize, usize)>,
    /// Servers of each type that there should be.
    pub wanted: Vec<u32>,
    /// Nodes that are to stay, whatever else is given back.
    pub kept: Vec<String>,
    /// Needs that no type can ever serve at the price that the tenant pays.
    pub too_dear: Vec<usize>,
}

/// What placement goes by.
#[derive(Debug)]
pub struct Placer<'a> {
    /// The types.
    pub types: &'a [ServerType],
    /// What is known of each now.
    pub views: &'a [TypeView],
    pub policy: &'a BatchPolicy,
    /// Expected running times.
    pub times: &'a mut RunningTimes,
}

impl Placer<'_> {
    /// Places members on nodes. The needs are in the order in which they are to be served.
    pub fn place(&mut self, now: i64, needs: &[Need], mut nodes: Vec<NodeView>) -> Placement {
        let mut made = Placement {
            wanted: vec![0; self.types.len()],
            ..Placement::default()
        };
        let mut new_servers: Vec<Vec<(u32, u64)>> = vec![Vec::new(); self.types.len()];
        for (at, need) in needs.iter().enumerate() {
            let ranked = self.ranked(need);
            if ranked.is_empty() {
                made.too_dear.push(at);
                continue;
            }
            let found = ranked.iter().find_map(|ty| self.node(need, *ty, &nodes));
            if let Some(node) = found.filter(|_| need.only_ask) {
                nodes[node].idle_since = None;
                continue;
            }
            if let Some(node) = found {
                nodes[node].free_cpus -= need.cpus;
                nodes[node].free_memory -= need.memory_mb;
                nodes[node].idle_since = None;
                made.starts.push((at, node));
                continue;
            }
            self.ask(need, &ranked, &nodes, &mut new_servers);
        }
        let spare = millis(self.policy.spare_seconds);
        for (ty, asked) in new_servers.iter().enumerate() {
            let own = nodes.iter().filter(|node| node.ty == ty && node.stays);
            let stays: Vec<&NodeView> = own
                .filter(|node| node.idle_since.is_none_or(|since| now - since < spare))
                .collect();
            made.kept.extend(stays.iter().map(|node| node.name.clone()));
            // Nodes that are about to take members need not be asked for.
            let about = stays.iter().filter(|node| !node.takes_jobs);
            let about = about.filter(|node| node.idle_since.is_some()).count();
            let asked = asked.len().saturating_sub(about) as u32;
            let view = &self.views[ty];
            // Spare servers that no member keeps make room if the type has no node left.
            let present = nodes.iter().filter(|node| node.ty == ty).count() as u32 + view.coming;
            let free = (self.types[ty].nodes.len() as u32).saturating_sub(present);
            let missing = asked.saturating_sub(view.coming).saturating_sub(free);
            let spares = stays.iter().filter(|node| node.idle_since.is_some());
            let give_up = (spares.count() as u32).min(missing);
            if give_up > 0 {
                let mut idle: Vec<&&NodeView> = stays
                    .iter()
                    .filter(|node| node.idle_since.is_some())
                    .collect();
                idle.sort_by_key(|node| std::cmp::Reverse(node.age));
                let gone: Vec<String> = idle
                    .iter()
                    .take(give_up as usize)
                    .map(|node| node.name.clone())
                    .collect();
                made.kept.retain(|name| !gone.contains(name));
            }
            let stay = stays.len() as u32 - give_up;
            // While servers are given back, a higher number would take them up again.
            let waits = view.draining || give_up > 0;
            made.wanted[ty] = stay + if waits { asked.min(view.coming) } else { asked };
        }
        made
    }

    /// Types that may serve a need, the cheapest in expectation first.
    fn ranked(&mut self, need: &Need) -> Vec<usize> {
        let mut all: Vec<(f64, usize)> = Vec::new();
        let mut out_of_bid = false;
        for (at, ty) in self.types.iter().enumerate() {
            let fits = ty.vcpus >= need.cpus && ty.memory_mb >= need.memory_mb;
            let hourly = self.views[at].hourly;
            let limit = [need.max_price, ty.max_price.map(|price| price.micros())];
            let dear = limit.into_iter().flatten().any(|limit| hourly > limit);
            let bid = need.max_price.is_some_and(|bid| hourly > bid);
            out_of_bid |= fits && ty.preemptible && bid;
            if !fits || (ty.preemptible && (need.on_demand || dear)) {
                continue;
            }
            let ask = self.question(need, at);
            let expected = self.times.expected(at, ty, 0, ask);
            all.push((
                expected * hourly as f64 * share(ty, need.cpus, need.memory_mb),
                at,
            ));
        }
        all.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        // On-demand servers are for those that must have them, or for whom they are cheapest. What
        // no server survives goes there as well. A member that waits for its price does not.
        let cheapest = all.first().map(|(_, at)| *at);
        let sound = |(cost, at): &(f64, usize)| {
            let must = need.on_demand || (Some(*at) == cheapest && !out_of_bid);
            cost.is_finite() && (self.types[*at].preemptible || must)
        };
        all.retain(sound);
        all.into_iter().map(|(_, at)| at).collect()
    }

    fn question(&self, need: &Need, ty: usize) -> RunningTimeQuery {
        RunningTimeQuery {
            length: need.left.expected,
            checkpoint: need.checkpoint,
            boot: self.views[ty].boot,
        }
    }

    /// The node of a type that a member gets: the oldest that is kept for it.
    fn node(&mut self, need: &Need, ty: usize, nodes: &[NodeView]) -> Option<usize> {
        let ask = self.question(need, ty);
        let fits = |node: &NodeView| {
            node.ty == ty
                && node.takes_jobs
                && node.free_cpus >= need.cpus
                && node.free_memory >= need.memory_mb
        };
        let mut all: Vec<usize> = (0..nodes.len()).filter(|at| fits(&nodes[*at])).collect();
        // Nodes that work already first, so that others can be given back.
        all.sort_by_key(|at| {
            let node = &nodes[*at];
            (node.idle_since.is_some(), std::cmp::Reverse(node.age), *at)
        });
        let own = &self.types[ty];
        let kept = |at: &usize| {
            let age = nodes[*at].age;
            self.times.keeps(self.policy.reuse, ty, own, age, ask)
        };
        all.into_iter().find(kept)
    }

    /// Asks for a new server, or for room on one that another member has asked for.
    fn ask(&self, need: &Need, ranked: &[usize], nodes: &[NodeView], new: &mut [Vec<(u32, u64)>]) {
        let room = |(cpus, memory): &(u32, u64)| *cpus >= need.cpus && *memory >= need.memory_mb;
        for ty in ranked {
            if let Some(one) = new[*ty].iter_mut().find(|one| room(one)) {
                one.0 -= need.cpus;
                one.1 -= need.memory_mb;
                return;
            }
            let own = &self.types[*ty];
            let busy = nodes
                .iter()
                .filter(|node| node.ty == *ty && node.idle_since.is_none());
            if busy.count() + new[*ty].len() < own.nodes.len() {
                new[*ty].push((own.vcpus - need.cpus, own.memory_mb - need.memory_mb));
                return;
            }
        }
    }
}

/// The part of a server that a member has: of processors or memory, whichever is more.
#[must_use]
pub fn share(ty: &ServerType, cpus: u32, memory_mb: u64) -> f64 {
    let cpus = f64::from(cpus) / f64::from(ty.vcpus);
    let memory = memory_mb as f64 / ty.memory_mb as f64;
    cpus.max(memory).min(1.0)
}
