//! The controller: it takes the state of Slurm, the cloud and the marks of members, and returns
//! facts to write down and actions to take.
//!
//! It is level-triggered, like [`ebbtide_burst::Manager`], of which it has one for the nodes of
//! each type: a lost, refused or repeated action does no harm, since the next look shows the
//! difference. The facts of a look are written before its actions are carried out. An attempt
//! therefore stands in the book before Slurm knows of it, and Slurm's job is found by its name.

mod attempts;
mod bags;
mod bid;
mod budget;
mod deadline;
mod needs;
mod single;
mod world;

pub use attempts::PUT_BACK;
pub use world::{AttemptResult, BatchAction, BatchWorld, Mark, attempt_of, job_name};

use crate::book::{Book, BookEntry, Fact, WorkBook, WorkId, WorkState};
use crate::error::BatchError;
use crate::maps::{BagWork, is_bag};
use crate::placement::{NodeView, Placement, Placer, TypeView, share};
use crate::running_time::RunningTimes;
use crate::settings::{BatchSettings, ServerType, millis};
use crate::work::{MemberId, Work};
use bags::Bags;
use ebbtide_burst::{BurstAction, BurstError, Load, Manager, PoolServer, Status};
use ebbtide_deadline::{Decider, Decision};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// An attempt whose job Slurm does not show after so long was not taken.
const UNSEEN_MS: i64 = 15_000;
/// A job that still waits for its node after so long is taken back: the node is up and empty.
const WAITS_MS: i64 = 30_000;
/// Repeat interval of an action without visible effect.
const AGAIN_MS: i64 = 5_000;

/// Result of one look.
#[derive(Debug, Default)]
pub struct BatchDecisions {
    /// Facts, already taken into the book; to be written down before anything is done.
    pub facts: Vec<BookEntry>,
    /// What is to be done with nodes and servers.
    pub nodes: Vec<BurstAction>,
    /// What is to be done with jobs.
    pub jobs: Vec<BatchAction>,
    /// Errors of the pool.
    pub troubles: Vec<BurstError>,
    /// Errors of works.
    pub problems: Vec<BatchError>,
    /// Servers of each type that there should be.
    pub wanted: Vec<u32>,
}

/// Work that was checked, and not taken in yet.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedWork {
    pub entry: BookEntry,
    /// What follows from it.
    pub book: WorkBook,
}

#[derive(Debug)]
pub struct BatchController {
    settings: BatchSettings,
    types: Vec<ServerType>,
    managers: Vec<Manager>,
    /// Bags by maps, and the types of servers that are theirs.
    bags: Bags,
    times: RunningTimes,
    /// All work.
    book: Book,
    /// Since when each node has nothing to do.
    idle: BTreeMap<String, i64>,
    /// How long servers of each type took to come up, milliseconds: an average.
    boots: Vec<i64>,
    /// When each node's server was asked for.
    asked: BTreeMap<String, i64>,
    /// When each action was last sent.
    last_sent: BTreeMap<BatchAction, i64>,
    /// What decides for works of one member that can be saved.
    deciders: BTreeMap<WorkId, Decider>,
    /// What they decided at this look.
    decisions: BTreeMap<WorkId, Decision>,
    /// Nodes whose servers the last attempt left because the next hour is dearer than its bid, and
    /// when.
    let_go: BTreeMap<String, i64>,
    /// The last decision point at which the price for an attempt was looked at.
    bid_points: BTreeMap<(WorkId, MemberId, u32), i64>,
    /// Works that have members to run and no budget for one.
    unaffordable: BTreeSet<WorkId>,
    /// Errors that were reported, so that each is reported once.
    reported: BTreeSet<(WorkId, &'static str, Option<MemberId>)>,
}

impl BatchController {
    /// A controller with the book of an earlier one.
    ///
    /// # Errors
    /// [`BatchError::Setting`].
    pub fn new(settings: &BatchSettings, book: Book) -> Result<Self, BatchError> {
        let types = settings.server_types()?.into_iter();
        let (for_bags, types): (Vec<ServerType>, Vec<ServerType>) = types.partition(|ty| ty.maps);
        let managers = managers(settings, &types)?;
        Ok(Self {
            bags: Bags::new(settings, for_bags, &book)?,
            boots: vec![millis(settings.policy.boot_seconds); types.len()],
            settings: settings.clone(),
            types,
            managers,
            times: RunningTimes::default(),
            let_go: bid::let_go(&book),
            bid_points: BTreeMap::new(),
            book,
            idle: BTreeMap::new(),
            asked: BTreeMap::new(),
            last_sent: BTreeMap::new(),
            deciders: BTreeMap::new(),
            decisions: BTreeMap::new(),
            unaffordable: BTreeSet::new(),
            reported: BTreeSet::new(),
        })
    }

    /// All work.
    #[must_use]
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// The types of servers.
    pub fn types(&self) -> impl Iterator<Item = &ServerType> {
        self.types.iter().chain(&self.bags.types)
    }

    /// What a work is doing; `None` for one that is not known.
    #[must_use]
    pub fn state(&self, now: i64, work: WorkId) -> Option<WorkState> {
        let state = self.book.works.get(&work)?.state(now);
        let unaffordable = self.unaffordable.contains(&work) || self.bags.broke.contains(&work);
        let broke = state == WorkState::Active && unaffordable;
        Some(if broke { WorkState::OverBudget } else { state })
    }

    #[must_use]
    pub fn type_of(&self, node: &str) -> Option<&ServerType> {
        self.types()
            .find(|ty| ty.nodes.iter().any(|one| one == node))
    }

    /// Whether the node of a server has come up during the life of this controller.
    #[must_use]
    pub fn has_come_up(&self, server: &str) -> bool {
        let mut managers = self.managers.iter().chain(&self.bags.managers);
        self.bags.seen_up.contains(server) || managers.any(|one| one.has_come_up(server))
    }

    /// Checks work, and plans a bag by maps for the nodes that are free. Nothing is changed.
    /// `prices` is what an hour of each flavor costs now, `servers` are those of the last look.
    ///
    /// # Errors
    /// [`BatchError::Work`]; [`BatchError::NoType`] if no type has room for a member.
    pub fn check(
        &self,
        now: i64,
        document: Value,
        prices: &BTreeMap<String, u64>,
        servers: &[PoolServer],
    ) -> Result<CheckedWork, BatchError> {
        let document = if is_bag(&document) {
            let types = self.bags.free(servers);
            BagWork::settle(&document, &self.settings.policy, &types, prices)?.1
        } else if self.settings.rehearse {
            let problem = "the service rehearses bags with rules: it takes nothing else";
            return Err(BatchError::work("rules", problem));
        } else {
            let work = Work::read(&document)?;
            self.check_room(&work)?;
            self.check_deadline(&work)?;
            document
        };
        let entry = BookEntry {
            at: now,
            work: self.book.next_id(),
            fact: Fact::Submitted { document },
        };
        let mut book = Book::default();
        book.apply(&entry)?;
        let made = book.works.remove(&entry.work);
        let book = made.ok_or_else(|| BatchError::work("the document", "it is no work"))?;
        Ok(CheckedWork { entry, book })
    }

    /// Takes in work. The entry is to be written down.
    ///
    /// # Errors
    /// [`BatchError::Work`] for a bag whose plan cannot be begun.
    pub fn accept(&mut self, checked: CheckedWork) -> Result<BookEntry, BatchError> {
        let CheckedWork { entry, book } = checked;
        self.bags.begin(entry.work, &book)?;
        self.book.works.insert(entry.work, book);
        Ok(entry)
    }

    fn check_room(&self, work: &Work) -> Result<(), BatchError> {
        for stage in &work.stages {
            let fits = |ty: &ServerType| ty.vcpus >= stage.cpus && ty.memory_mb >= stage.memory_mb;
            if !self.types.iter().any(fits) {
                return Err(BatchError::NoType {
                    stage: stage.name.clone(),
                    cpus: stage.cpus,
                    memory_mb: stage.memory_mb,
                });
            }
        }
        Ok(())
    }

    /// Cancels a work. The entry is to be written down.
    ///
    /// # Errors
    /// [`BatchError::Unknown`], [`BatchError::Over`].
    pub fn cancel(&mut self, now: i64, work: WorkId) -> Result<BookEntry, BatchError> {
        self.change(now, work, Fact::Cancelled)
    }

    /// Changes what may be spent on a work, millionths. The entry is to be written down.
    ///
    /// # Errors
    /// [`BatchError::Unknown`], [`BatchError::Over`].
    pub fn set_budget(
        &mut self,
        now: i64,
        work: WorkId,
        budget: Option<u64>,
    ) -> Result<BookEntry, BatchError> {
        let entry = self.change(now, work, Fact::BudgetSet { budget })?;
        self.bags.broke.remove(&work);
        Ok(entry)
    }

    fn change(&mut self, now: i64, work: WorkId, fact: Fact) -> Result<BookEntry, BatchError> {
        let unknown = || BatchError::Unknown {
            id: work.to_string(),
        };
        let state = self.book.works.get(&work).ok_or_else(unknown)?.state(now);
        if state.is_over() {
            return Err(BatchError::Over {
                id: work.to_string(),
                state: state.as_str(),
            });
        }
        let entry = BookEntry {
            at: now,
            work,
            fact,
        };
        self.book.apply(&entry)?;
        // What is wrong after a change is reported anew.
        self.reported.retain(|(about, ..)| *about != work);
        Ok(entry)
    }

    /// Looks at the world and returns what follows.
    ///
    /// # Errors
    /// [`BatchError::Setting`] if a type's manager rejects an event.
    pub fn look(&mut self, now: i64, world: &BatchWorld<'_>) -> Result<BatchDecisions, BatchError> {
        let mut made = BatchDecisions::default();
        let views = self.views(world);
        self.note_prices(now, world, &mut made);
        self.decide_single(now, world, &views);
        self.follow(now, world, &mut made);
        self.measure(now, world);
        let views = self.views(world);
        let needs = if world.burst.budget_used_up {
            Vec::new()
        } else {
            self.needs(now, world, &views, &mut made)
        };
        let nodes = self.nodes(now, world);
        let placement = Placer {
            types: &self.types,
            views: &views,
            policy: &self.settings.policy,
            times: &mut self.times,
        }
        .place(now, &needs, nodes.clone());
        let prices = |node: &NodeView| {
            let paid = (world.paid)(&node.name);
            paid.map_or(views[node.ty].hourly, |(_, hourly)| hourly)
        };
        self.start(now, &needs, &nodes, prices, &placement, &mut made);
        for place in placement.too_dear.iter().copied() {
            let need = &needs[place];
            let error = BatchError::Work {
                key: format!("work {}", need.work),
                problem: "no server lives long enough for a member, or all are dearer than max_price: members wait".to_owned(),
            };
            self.report(need.work, None, error, &mut made);
        }
        self.look_after_nodes(now, world, &placement, &mut made)?;
        self.look_at_bags(now, world, &mut made)?;
        made.wanted = placement.wanted;
        self.last_sent.retain(|_, at| *at + 10 * AGAIN_MS > now);
        Ok(made)
    }

    /// Takes a fact into the book and among those to be written down.
    fn note(&mut self, now: i64, work: WorkId, fact: Fact, made: &mut BatchDecisions) {
        let entry = BookEntry {
            at: now,
            work,
            fact,
        };
        match self.book.apply(&entry) {
            Ok(()) => made.facts.push(entry),
            Err(error) => made.problems.push(error),
        }
    }

    /// Reports an error of a work once.
    fn report(
        &mut self,
        work: WorkId,
        member: Option<MemberId>,
        error: BatchError,
        made: &mut BatchDecisions,
    ) {
        if self.reported.insert((work, error.code(), member)) {
            made.problems.push(error);
        }
    }

    /// Returns an action, unless it was returned within [`AGAIN_MS`].
    fn send_once(&mut self, now: i64, action: BatchAction, made: &mut BatchDecisions) {
        let sent = self.last_sent.get(&action);
        if sent.is_none_or(|at| at + AGAIN_MS <= now || *at > now) {
            self.last_sent.insert(action.clone(), now);
            made.jobs.push(action);
        }
    }

    /// Measures how long servers take to come up.
    fn measure(&mut self, now: i64, world: &BatchWorld<'_>) {
        for (place, manager) in self.managers.iter().enumerate() {
            for name in &self.types[place].nodes {
                let server = world.burst.instance(name);
                let Some(server) = server.filter(|one| one.status.is_there()) else {
                    self.asked.remove(name);
                    continue;
                };
                if !manager.takes_jobs(name) {
                    self.asked.entry(name.clone()).or_insert(now);
                } else if let Some(since) = self.asked.remove(name) {
                    // From the request, where the cloud says when that was.
                    let since = if server.created_ms > 0 {
                        server.created_ms
                    } else {
                        since
                    };
                    let took = (now - since).clamp(0, 3_600_000);
                    self.boots[place] = (3 * self.boots[place] + took) / 4;
                }
            }
        }
    }

    fn views(&self, world: &BatchWorld<'_>) -> Vec<TypeView> {
        let each = self.types.iter().zip(&self.managers).enumerate();
        each.map(|(place, (ty, manager))| {
            let census = manager.census();
            TypeView {
                hourly: bid::hourly(ty, world),
                coming: census.provisioning,
                draining: census.draining > 0,
                boot: self.boots[place],
            }
        })
        .collect()
    }

    /// The nodes with a server, and what is free on them.
    fn nodes(&mut self, now: i64, world: &BatchWorld<'_>) -> Vec<NodeView> {
        let mut all = Vec::new();
        for (place, ty) in self.types.iter().enumerate() {
            for name in &ty.nodes {
                let server = world.burst.instance(name);
                let Some(server) = server.filter(|one| one.status.is_there()) else {
                    self.idle.remove(name);
                    continue;
                };
                // A server that comes counts in the type's view.
                let manager = &self.managers[place];
                if manager.is_coming(name) {
                    self.idle.remove(name);
                    continue;
                }
                let up = manager.takes_jobs(name);
                let stays = manager.is_staying(name) && server.status == Status::Active;
                let mut view = NodeView {
                    name: name.clone(),
                    ty: place,
                    takes_jobs: up && world.node(name).is_some_and(|node| node.in_service()),
                    stays,
                    age: server.launched_ms.map_or(0, |since| (now - since).max(0)),
                    free_cpus: ty.vcpus,
                    free_memory: ty.memory_mb,
                    idle_since: None,
                };
                let mut used = world.burst.jobs_on(name).next().is_some();
                for book in self.book.works.values() {
                    for (id, attempt) in book.running() {
                        if attempt.node == *name {
                            let stage = book.work.stage(id);
                            view.free_cpus = view.free_cpus.saturating_sub(stage.cpus);
                            view.free_memory = view.free_memory.saturating_sub(stage.memory_mb);
                            used = true;
                        }
                    }
                }
                if used {
                    self.idle.remove(name);
                } else if stays {
                    let since = *self.idle.entry(name.clone()).or_insert(now);
                    let since = if self.is_let_go(server) {
                        // It is no hot spare: its next hour would cost more than was bid.
                        since.min(now - millis(self.settings.policy.spare_seconds))
                    } else {
                        since
                    };
                    view.idle_since = Some(since);
                }
                all.push(view);
            }
        }
        all
    }

    /// Starts what was placed.
    fn start(
        &mut self,
        now: i64,
        needs: &[crate::placement::Need],
        nodes: &[NodeView],
        prices: impl Fn(&NodeView) -> u64,
        placement: &Placement,
        made: &mut BatchDecisions,
    ) {
        for (need, node) in &placement.starts {
            let (need, node) = (&needs[*need], &nodes[*node]);
            let ty = &self.types[node.ty];
            let Some(book) = self.book.works.get(&need.work) else {
                continue;
            };
            let number = book.member(need.member).attempts.len() as u32 + 1;
            let fact = Fact::Started {
                stage: need.member.stage,
                index: need.member.index,
                attempt: number,
                node: node.name.clone(),
                server_type: ty.name.clone(),
                preemptible: ty.preemptible,
                hourly: prices(node),
                share: share(ty, need.cpus, need.memory_mb),
                from: need.from,
            };
            self.note(now, need.work, fact, made);
            self.let_go.remove(&node.name);
            made.jobs.push(BatchAction::Start {
                work: need.work,
                member: need.member,
                attempt: number,
                node: node.name.clone(),
                age: node.age,
                length: need.left.expected,
            });
        }
    }

    /// Lets each type's manager look after its nodes.
    fn look_after_nodes(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        placement: &Placement,
        made: &mut BatchDecisions,
    ) -> Result<(), BatchError> {
        let burst = ebbtide_burst::ClusterSnapshot {
            kept: &placement.kept,
            ..world.burst
        };
        for (place, manager) in self.managers.iter_mut().enumerate() {
            let load = Load::servers(placement.wanted[place]);
            let heard = manager.look(now, &burst, load)?;
            made.nodes.extend(heard.actions);
            made.troubles.extend(heard.troubles);
        }
        Ok(())
    }
}

/// The manager of the nodes of each type.
fn managers(settings: &BatchSettings, types: &[ServerType]) -> Result<Vec<Manager>, BatchError> {
    let each = types.iter();
    each.map(|ty| Ok(Manager::new(settings.manager_options(ty)?)?))
        .collect()
}
