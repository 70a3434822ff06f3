//! Bags by maps: what a look shows is told to the executor of each, and what the executor wants is
//! compared with what there is.
//!
//! Each server of a plan has a node of its own, of a type that is for such bags alone. The nodes of
//! a bag that is open are the bag's: no manager drains them or deletes what hibernates there. The
//! nodes that no bag has are looked after by the manager of their type, which wants no server.

use super::{AGAIN_MS, BatchAction, BatchController, BatchDecisions, BatchWorld, UNSEEN_MS};
use super::{bid, job_name, managers};
use crate::book::{Attempt, AttemptEnd, Book, Fact, HOUR_MS, WorkBook, WorkId, WorkState};
use crate::error::BatchError;
use crate::maps::{BagRun, BagWork};
use crate::placement::share;
use crate::settings::{BatchSettings, ServerType, millis};
use ebbtide_bag::{BagEvent, VmId, VmState};
use ebbtide_burst::{BurstAction, BurstError, Load, Manager, OURS, PoolServer, Status};
use std::collections::{BTreeMap, BTreeSet};

/// The bags that are open, and the types of servers that are for them.
#[derive(Debug)]
pub(super) struct Bags {
    pub(super) types: Vec<ServerType>,
    pub(super) managers: Vec<Manager>,
    /// Servers whose nodes have come up.
    pub(super) seen_up: BTreeSet<String>,
    runs: BTreeMap<WorkId, BagRun>,
    /// The nodes of each.
    nodes: BTreeMap<String, WorkId>,
    /// Those whose budget was too small for a task that was to start.
    pub(super) broke: BTreeSet<WorkId>,
    /// Nodes that slurmctld has powered up for their bag.
    heard: BTreeSet<String>,
    /// When each action was last sent.
    sent: BTreeMap<BurstAction, i64>,
    /// Whether a server that is kept has what was in its memory. Nova has no way to keep it that
    /// frees a host.
    freezes: bool,
}

impl Bags {
    /// The bags of a book that are open.
    pub(super) fn new(
        settings: &BatchSettings,
        types: Vec<ServerType>,
        book: &Book,
    ) -> Result<Self, BatchError> {
        let mut bags = Self {
            managers: managers(settings, &types)?,
            types,
            seen_up: BTreeSet::new(),
            runs: BTreeMap::new(),
            nodes: BTreeMap::new(),
            broke: BTreeSet::new(),
            heard: BTreeSet::new(),
            sent: BTreeMap::new(),
            freezes: settings.openstack.is_none(),
        };
        for (id, work) in &book.works {
            if is_open(work, work.submitted) {
                bags.begin(*id, work)?;
            }
        }
        Ok(bags)
    }

    /// Begins with a work, if it is a bag by maps.
    pub(super) fn begin(&mut self, id: WorkId, book: &WorkBook) -> Result<(), BatchError> {
        let Some(bag) = &book.bag else { return Ok(()) };
        self.runs.insert(id, BagRun::new(bag, book.submitted)?);
        let nodes = bag.work.nodes().map(|(_, node)| (node.to_owned(), id));
        self.nodes.extend(nodes);
        Ok(())
    }

    /// The types with the nodes that no bag has, and that have no server.
    pub(super) fn free(&self, servers: &[PoolServer]) -> Vec<ServerType> {
        let free = |node: &String| {
            let mut own = servers.iter().filter(|one| one.node == *node);
            !self.nodes.contains_key(node) && own.all(|one| one.status == Status::Gone)
        };
        let mut types = self.types.clone();
        for ty in &mut types {
            ty.nodes.retain(free);
        }
        types
    }

    /// Returns an action, unless it was returned a moment ago.
    fn send_once(&mut self, now: i64, again: i64, action: BurstAction, made: &mut BatchDecisions) {
        let at = self.sent.get(&action);
        if at.is_none_or(|at| at.saturating_add(again) <= now || *at > now) {
            self.sent.insert(action.clone(), now);
            made.nodes.push(action);
        }
    }
}

/// Whether something is left to do for a bag by maps.
fn is_open(book: &WorkBook, now: i64) -> bool {
    book.bag.is_some() && (!book.state(now).is_over() || book.running().next().is_some())
}

/// The server of a node: the oldest that is there or frozen, else one that is not gone.
fn server<'s>(servers: &'s [PoolServer], node: &str) -> Option<&'s PoolServer> {
    let own = servers.iter().filter(|one| one.node == node);
    let own = own.filter(|one| one.status != Status::Gone);
    own.min_by_key(|one| {
        let there = one.status.is_there() || one.status == Status::Kept;
        (!there, one.age_key())
    })
}

impl BatchController {
    /// A bag by maps that is open.
    #[must_use]
    pub fn bag_run(&self, work: WorkId) -> Option<&BagRun> {
        self.bags.runs.get(&work)
    }

    /// When the next look has to be at the latest: the next latest start of a backup.
    #[must_use]
    pub fn wake_at(&self) -> Option<i64> {
        let runs = self.bags.runs.values();
        runs.filter_map(BagRun::wake_at).min()
    }

    /// Looks at each open bag, and at the nodes that none of them has.
    pub(super) fn look_at_bags(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        made: &mut BatchDecisions,
    ) -> Result<(), BatchError> {
        for id in self.bags.runs.keys().copied().collect::<Vec<_>>() {
            let Some(mut run) = self.bags.runs.remove(&id) else {
                continue;
            };
            let looked = self.look_at_bag(now, world, id, &mut run, made);
            let book = self.book.works.get(&id);
            if book.is_some_and(|book| is_open(book, now)) {
                self.bags.runs.insert(id, run);
            } else {
                self.bags.nodes.retain(|_, bag| *bag != id);
            }
            looked?;
        }
        let bags = &mut self.bags;
        for (ty, manager) in bags.types.iter().zip(&mut bags.managers) {
            let free = ty.nodes.iter().filter(|one| !bags.nodes.contains_key(*one));
            manager.set_nodes(free.cloned().collect());
            let heard = manager.look(now, &world.burst, Load::servers(0))?;
            made.nodes.extend(heard.actions);
            made.troubles.extend(heard.troubles);
        }
        bags.sent.retain(|_, at| *at + 100 * AGAIN_MS > now);
        Ok(())
    }

    fn look_at_bag(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        id: WorkId,
        run: &mut BagRun,
        made: &mut BatchDecisions,
    ) -> Result<(), BatchError> {
        let now = run.look_at(now);
        let Some(nodes) = self.of_bag(id, |bag| {
            let nodes = bag.nodes().map(|(vm, node)| (vm, node.to_owned()));
            nodes.collect::<Vec<_>>()
        }) else {
            return Ok(());
        };
        // Tasks first, so that what was done on a server that is gone now counts.
        for event in self.finished(id, run) {
            self.tell(id, run, event, made)?;
        }
        if !self.is_over(now, id) {
            for (vm, node) in &nodes {
                if let Some(event) = self.seen(world, run, *vm, node) {
                    self.tell(id, run, event, made)?;
                }
            }
            if run.wake_at().is_some_and(|at| at <= now) {
                self.tell(id, run, BagEvent::Time, made)?;
            }
        }
        self.report_missed(now, id, made);
        self.stop_tasks(now, world, id, run, made);
        self.start_tasks(now, world, id, run, made);
        if self.is_bag_broke(now, id) && !self.is_over(now, id) {
            let book = self.book.works.get(&id);
            let told = book.map(|book| (book.spent(now), book.budget.unwrap_or(0)));
            let (spent, budget) = told.unwrap_or_default();
            self.report_budget(id, spent, budget, made);
        }
        for (vm, node) in &nodes {
            self.look_after_node(now, world, id, run.state(*vm), node, made);
        }
        Ok(())
    }

    fn of_bag<T>(&self, id: WorkId, part: impl Fn(&BagWork) -> T) -> Option<T> {
        let bag = self.book.works.get(&id)?.bag.as_ref()?;
        Some(part(&bag.work))
    }

    fn is_over(&self, now: i64, id: WorkId) -> bool {
        let book = self.book.works.get(&id);
        book.is_none_or(|book| book.state(now).is_over())
    }

    /// Tells the executor, and writes down that it was told.
    fn tell(
        &mut self,
        id: WorkId,
        run: &mut BagRun,
        what: BagEvent,
        made: &mut BatchDecisions,
    ) -> Result<(), BatchError> {
        run.tell(what)?;
        self.note(run.look_at(i64::MIN), id, Fact::Bag { what }, made);
        Ok(())
    }

    /// Tasks that are done, and of which the executor does not know.
    fn finished(&self, id: WorkId, run: &BagRun) -> Vec<BagEvent> {
        let Some(book) = self.book.works.get(&id) else {
            return Vec::new();
        };
        let Some(bag) = &book.bag else {
            return Vec::new();
        };
        let members = book.members.iter().flatten().enumerate();
        let new = members.filter(|(task, one)| one.done && !run.is_task_done(*task));
        let done = |one: &&Attempt| matches!(one.end, Some((_, AttemptEnd::Done)));
        new.map(|(task, one)| {
            let by = one.attempts.iter().find(done);
            let vm = by.and_then(|one| bag.work.vm(&one.node));
            let vm = vm.unwrap_or(VmId::Primary(0));
            BagEvent::Finished { task, vm }
        })
        .collect()
    }

    /// The state of a server, as a bag sees it.
    fn status(&self, server: &PoolServer) -> Status {
        match server.status {
            Status::Kept if !self.bags.freezes => Status::Failed,
            other => other,
        }
    }

    /// What happened to a server, if that is new.
    fn seen(
        &mut self,
        world: &BatchWorld<'_>,
        run: &BagRun,
        vm: VmId,
        node: &str,
    ) -> Option<BagEvent> {
        let own = server(world.burst.instances, node);
        let status = own.map(|one| self.status(one));
        let ready = world.node(node).is_some_and(|node| node.in_service());
        match (run.state(vm), status) {
            (VmState::Launched, Some(Status::Active | Status::Leaving)) if ready => {
                self.bags.seen_up.extend(own.map(|one| one.id.clone()));
                Some(BagEvent::Started(vm))
            }
            (VmState::Launched | VmState::Up, Some(Status::Kept)) => Some(BagEvent::Hibernated(vm)),
            (VmState::Hibernated, Some(Status::Active | Status::Leaving)) => {
                Some(BagEvent::Resumed(vm))
            }
            (
                VmState::Up | VmState::Hibernated,
                None | Some(Status::Gone | Status::Going | Status::Failed),
            ) => Some(BagEvent::Interrupted(vm)),
            _ => None,
        }
    }

    /// Says once that a bag is late.
    fn report_missed(&mut self, now: i64, id: WorkId, made: &mut BatchDecisions) {
        let Some(book) = self.book.works.get(&id) else {
            return;
        };
        let ended = match book.state(now) {
            WorkState::Done => book.last_end.unwrap_or(now),
            WorkState::Failed | WorkState::Cancelled => return,
            WorkState::Active | WorkState::OverBudget => now,
        };
        let Some(deadline) = book.deadline().filter(|deadline| ended > *deadline) else {
            return;
        };
        let error = BatchError::Missed {
            id: id.to_string(),
            done: book.counts().0,
            tasks: book.work.members().count(),
            took: (ended - book.submitted) / 1_000,
            deadline: (deadline - book.submitted) / 1_000,
        };
        self.report(id, None, error, made);
    }

    /// Ends attempts whose task does not run there any more.
    fn stop_tasks(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        id: WorkId,
        run: &BagRun,
        made: &mut BatchDecisions,
    ) {
        let Some(book) = self.book.works.get(&id) else {
            return;
        };
        let state = book.state(now);
        let over = state.is_over() || state == WorkState::OverBudget;
        let Some(bag) = &book.bag else { return };
        let runs = run.running();
        let ended = book.running().filter(|(member, attempt)| {
            let vm = bag.work.vm(&attempt.node);
            over || !vm.is_some_and(|vm| runs.contains(&(vm, member.index)))
        });
        let jobs = ended.filter_map(|(member, attempt)| {
            let job = world.job(&job_name(id, member, attempt.number))?;
            (!job.is_over()).then_some(job.id)
        });
        for job in jobs.collect::<Vec<_>>() {
            self.send_once(now, BatchAction::Stop { job }, made);
        }
    }

    /// Starts the tasks that run by the executor and have no attempt there.
    fn start_tasks(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        id: WorkId,
        run: &BagRun,
        made: &mut BatchDecisions,
    ) {
        if self.is_over(now, id) || world.burst.budget_used_up || self.is_bag_broke(now, id) {
            return;
        }
        for (vm, task) in run.running() {
            let member = BagWork::member(task);
            let Some(book) = self.book.works.get(&id) else {
                return;
            };
            let Some(node) = self.of_bag(id, |bag| bag.node(vm).to_owned()) else {
                return;
            };
            let Some(ty) = self.type_of(&node) else {
                continue;
            };
            let attempts = &book.member(member).attempts;
            // One that was not taken has waited long enough.
            let soon = |one: &Attempt, at: i64| {
                at.saturating_add(AGAIN_MS) > now && at.saturating_sub(one.started) < UNSEEN_MS
            };
            let mut own = attempts.iter().filter(|one| one.node == node);
            let waits = own.any(|one| one.end.is_none_or(|(at, _)| soon(one, at)));
            if waits || run.state(vm) != VmState::Up || book.member(member).done {
                continue;
            }
            let hourly = (world.paid)(&node).map_or_else(|| bid::hourly(ty, world), |paid| paid.1);
            let part = share(ty, 1, book.memory_mb(member));
            let takes = self.of_bag(id, |bag| bag.length_ms(task)).unwrap_or(0);
            let cost = takes as f64 / HOUR_MS * hourly as f64 * part;
            if self.unpromised(now, book).is_some_and(|left| left < cost) {
                self.bags.broke.insert(id);
                return;
            }
            let attempt = attempts.len() as u32 + 1;
            let fact = Fact::Started {
                stage: member.stage,
                index: member.index,
                attempt,
                node: node.clone(),
                server_type: ty.name.clone(),
                preemptible: ty.preemptible,
                hourly,
                share: part,
                from: 0,
            };
            self.note(now, id, fact, made);
            made.jobs.push(BatchAction::Start {
                work: id,
                member,
                attempt,
                node,
                age: 0,
                length: 0,
            });
        }
    }

    /// Whether the budget of a bag lets a node keep its server: what runs there may end.
    fn affords(&self, now: i64, id: WorkId, node: &str) -> bool {
        let Some(book) = self.book.works.get(&id) else {
            return true;
        };
        let runs = || book.running().any(|(_, attempt)| attempt.node == node);
        book.state(now) != WorkState::OverBudget && (!self.is_bag_broke(now, id) || runs())
    }

    /// Lets a node have a server if its bag wants one, and gives back what it does not want.
    fn look_after_node(
        &mut self,
        now: i64,
        world: &BatchWorld<'_>,
        id: WorkId,
        state: VmState,
        name: &str,
        made: &mut BatchDecisions,
    ) {
        let Some(node) = world.node(name) else {
            let problem = format!(
                "node {name} is not there; it needs a NodeName line with State=CLOUD, and PrivateData=cloud"
            );
            if self.reported.insert((id, "node", None)) {
                made.troubles.push(BurstError::Cluster { problem });
            }
            return;
        };
        let affords = !world.burst.budget_used_up && self.affords(now, id, name);
        let wanted = state.is_wanted() && !self.is_over(now, id) && affords;
        let own = server(world.burst.instances, name);
        let keeps = own.filter(|one| wanted && self.status(one) != Status::Failed);
        let given_back = |one: &&PoolServer| {
            one.node == name
                && !matches!(one.status, Status::Gone | Status::Going)
                && keeps.is_none_or(|keeps| keeps.id != one.id)
        };
        let given_back: Vec<String> = world
            .burst
            .instances
            .iter()
            .filter(given_back)
            .map(|one| one.id.clone())
            .collect();
        let there = keeps.is_some_and(|one| one.status != Status::Going);
        let off = node.is_off() || node.is_stopping();
        let launch_again = millis(self.settings.policy.launch_again_seconds);
        let bags = &mut self.bags;
        let name = name.to_owned();
        if !wanted {
            bags.heard.remove(&name);
        } else if !off {
            bags.heard.insert(name.clone());
        }
        if !wanted {
            if !off {
                let action = BurstAction::PowerDown { node: name };
                bags.send_once(now, AGAIN_MS, action, made);
            }
        } else if node.is_off() && !node.is_stopping() && !node.is_down() {
            if state == VmState::Launched && own.is_none() {
                // What the cloud refused waits. What slurmctld did not hear of does not.
                let again = if bags.heard.contains(&name) {
                    launch_again
                } else {
                    launch_again.min(AGAIN_MS)
                };
                let action = BurstAction::PowerUp { node: name };
                bags.send_once(now, again, action, made);
            }
        } else if !there && !off && (node.is_down() || node.is_up()) {
            // A server that is gone, or that the cloud did not give: off, then on again.
            let action = BurstAction::PowerDown { node: name };
            bags.send_once(now, AGAIN_MS, action, made);
        } else if node.is_up()
            && node.is_drained()
            // Slurm forgets why a node rests when it comes up.
            && (node.reason.starts_with(OURS) || state == VmState::Launched)
        {
            let action = BurstAction::Open { node: name };
            bags.send_once(now, AGAIN_MS, action, made);
        }
        for instance in given_back {
            bags.send_once(now, AGAIN_MS, BurstAction::Delete { instance }, made);
        }
    }
}
