//! The loop: whatever happens next is told to the executor, and what that asks for is done.

use super::instance::{InstanceEvent, SimulatedInstance};
use super::{BarEnd, OutageEnd, PlanRun, Scenario};
use crate::error::BagError;
use crate::executor::{BagAction, BagEvent, Executor, VmId};
use crate::input::Bag;
use crate::map::Market;
use crate::plan::Plan;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A change of an instance's luck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum InstanceChange {
    Thaws,
    Freezes,
    Ends,
}

struct BagSimulation<'a> {
    bag: &'a Bag,
    plan: &'a Plan,
    executor: Executor,
    instances: Vec<SimulatedInstance>,
    places: BTreeMap<VmId, usize>,
    /// When something happens on an instance next. Entries that are no longer true are passed over.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    done: Vec<u64>,
    moved: usize,
}

/// Carries a plan out in a simulated world. Where several things happen in the same second, tasks
/// end first, and outages come before time.
///
/// # Errors
/// [`BagError::Event`] for an outage of an instance that the plan does not have, or one that ends
/// before it begins.
pub fn simulate(bag: &Bag, plan: &Plan, scenario: &Scenario) -> Result<PlanRun, BagError> {
    let mut turns = turns(plan, scenario)?.into_iter().peekable();
    let (executor, actions) = Executor::begin(bag, plan, scenario.policy);
    let mut world = BagSimulation {
        bag,
        plan,
        executor,
        instances: Vec::new(),
        places: BTreeMap::new(),
        queue: BinaryHeap::new(),
        done: vec![0; bag.tasks().len()],
        moved: 0,
    };
    world.act(0, &actions);
    let mut now = 0;
    while !world.executor.is_done() {
        let own = world.next();
        let turn = turns.peek().map(|&(at, _, _)| at);
        let wake = world.executor.wake_at();
        let Some(at) = [own.map(|(at, _)| at), turn, wake]
            .into_iter()
            .flatten()
            .min()
        else {
            // Only without copies: an instance sleeps for ever and has no backup that waits.
            break;
        };
        now = at;
        match own.filter(|(own, _)| *own == at) {
            Some((_, place)) => world.step(at, place)?,
            None if turn == Some(at) => {
                if let Some((_, turn, vm)) = turns.next() {
                    world.turn(at, turn, vm)?;
                }
            }
            None => world.notify(at, BagEvent::Time)?,
        }
    }
    let met =
        world.executor.is_done() && world.done.iter().all(|&done| done <= bag.rules().deadline);
    let makespan = world.done.iter().copied().max().unwrap_or(0);
    let backups = world
        .instances
        .iter()
        .filter(|i| matches!(i.vm, VmId::Backup(_)))
        .count();
    let instances: Vec<_> = world
        .instances
        .into_iter()
        .map(|instance| instance.paid(bag, &scenario.prices, now))
        .collect();
    Ok(PlanRun {
        makespan,
        met,
        price: crate::map::sum(instances.iter().map(|i| i.price)),
        instances,
        backups,
        moved: world.moved,
        done: world.done,
    })
}

/// Outages as single turns, in order, those that overlap left out.
fn turns(plan: &Plan, scenario: &Scenario) -> Result<Vec<(u64, InstanceChange, usize)>, BagError> {
    let mut outages = scenario.outages.clone();
    outages.sort_by_key(|outage| (outage.vm, outage.from));
    let mut turns = Vec::new();
    let mut free: (usize, u64) = (usize::MAX, 0);
    for outage in outages {
        let wrong = |problem: String| {
            Err(BagError::Event {
                at: outage.from,
                problem,
            })
        };
        let Some(planned) = plan.vms.get(outage.vm) else {
            return wrong(format!("the plan has no instance {}", outage.vm));
        };
        if planned.vm.market == Market::OnDemand {
            continue;
        }
        if free.0 == outage.vm && outage.from < free.1 {
            continue;
        }
        match outage.end {
            OutageEnd::Resumes(to) if to < outage.from => {
                return wrong(format!("the hibernation ends at {to} s, before it begins"));
            }
            OutageEnd::Resumes(to) => {
                turns.push((outage.from, InstanceChange::Freezes, outage.vm));
                turns.push((to, InstanceChange::Thaws, outage.vm));
                free = (outage.vm, to);
            }
            OutageEnd::Never => {
                turns.push((outage.from, InstanceChange::Freezes, outage.vm));
                free = (outage.vm, u64::MAX);
            }
            OutageEnd::Interrupted => {
                turns.push((outage.from, InstanceChange::Ends, outage.vm));
                free = (outage.vm, u64::MAX);
            }
        }
    }
    // Stable: a hibernation of no length freezes before it thaws, and one that follows another
    // thaws before it freezes.
    turns.sort_by_key(|&(at, _, _)| at);
    Ok(turns)
}

impl BagSimulation<'_> {
    /// What happens next on any instance.
    fn next(&mut self) -> Option<(u64, usize)> {
        while let Some(&Reverse((at, place))) = self.queue.peek() {
            if self.instances[place].next().is_some_and(|(t, _)| t == at) {
                return Some((at, place));
            }
            self.queue.pop();
        }
        None
    }

    fn queued(&mut self, place: usize) {
        if let Some((at, _)) = self.instances[place].next() {
            self.queue.push(Reverse((at, place)));
        }
    }

    /// Something happens on an instance by itself.
    fn step(&mut self, now: u64, place: usize) -> Result<(), BagError> {
        let Some((_, next)) = self.instances[place].next() else {
            return Ok(());
        };
        let vm = self.instances[place].vm;
        self.instances[place].happened(self.bag, next);
        let event = match next {
            InstanceEvent::Up => BagEvent::Started(vm),
            InstanceEvent::Saves { task, work } => BagEvent::Checkpointed { task, work },
            InstanceEvent::Done { task } => {
                if !self.executor.is_task_done(task) {
                    self.done[task] = now;
                    self.moved += usize::from(matches!(vm, VmId::Backup(_)));
                }
                BagEvent::Finished { task, vm }
            }
        };
        self.notify(now, event)?;
        self.queued(place);
        Ok(())
    }

    fn turn(&mut self, now: u64, turn: InstanceChange, primary: usize) -> Result<(), BagError> {
        let vm = VmId::Primary(primary);
        let Some(&place) = self.places.get(&vm) else {
            return Ok(());
        };
        let instance = &mut self.instances[place];
        if instance.is_gone() {
            return Ok(());
        }
        let event = match turn {
            InstanceChange::Freezes => {
                instance.freeze(now);
                BagEvent::Hibernated(vm)
            }
            InstanceChange::Thaws if !instance.is_frozen() => return Ok(()),
            InstanceChange::Thaws => {
                instance.thaw(now);
                BagEvent::Resumed(vm)
            }
            InstanceChange::Ends => {
                instance.end(now);
                BagEvent::Interrupted(vm)
            }
        };
        self.notify(now, event)?;
        self.queued(place);
        Ok(())
    }

    fn notify(&mut self, now: u64, event: BagEvent) -> Result<(), BagError> {
        let actions = self.executor.on(now, event)?;
        self.act(now, &actions);
        Ok(())
    }

    fn act(&mut self, now: u64, actions: &[BagAction]) {
        for action in actions {
            let place = match *action {
                BagAction::Launch(vm) => self.launch(now, vm),
                BagAction::Run {
                    task,
                    vm,
                    core,
                    saved,
                } => self.on(vm, |bag, i| i.run(bag, task, core, saved, now)),
                BagAction::Cancel { task, vm, .. } => {
                    self.on(vm, |_, i| i.stop(task, now, BarEnd::Cancelled))
                }
                BagAction::Release(vm) => self.on(vm, |_, i| i.end(now)),
            };
            if let Some(place) = place {
                self.queued(place);
            }
        }
    }

    fn on(&mut self, vm: VmId, change: impl FnOnce(&Bag, &mut SimulatedInstance)) -> Option<usize> {
        let place = *self.places.get(&vm)?;
        let instance = &mut self.instances[place];
        if !instance.is_gone() {
            change(self.bag, instance);
        }
        Some(place)
    }

    fn launch(&mut self, now: u64, vm: VmId) -> Option<usize> {
        let (ty, market, cores) = match vm {
            VmId::Primary(at) => {
                let vm = &self.plan.vms.get(at)?.vm;
                (vm.ty, vm.market, vm.cores.len())
            }
            VmId::Backup(at) => {
                let backup = self.plan.vms.iter().flat_map(|p| &p.backups).nth(at)?;
                (backup.ty, Market::OnDemand, backup.cores.len())
            }
        };
        let instance = SimulatedInstance::launch(self.bag, vm, ty, market, cores, now);
        self.instances.push(instance);
        self.places.insert(vm, self.instances.len() - 1);
        Some(self.instances.len() - 1)
    }
}
