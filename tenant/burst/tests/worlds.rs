//! Runs the controller in simulated worlds with faults, followed by a period without faults.

use crate::common;
use crate::sim;

use common::{SETTINGS, manager_of};
use ebbtide_burst::slurm::JobState;
use ebbtide_burst::{BurstAction, ClusterSnapshot, Decisions, Manager, Status};
use proptest::prelude::*;
use sim::{Later, Sim, Weather};
use std::collections::{BTreeMap, BTreeSet};

/// K of the settings: r = 3, N = 2, p = 1.
const MOST: usize = 6;
/// An action that was said and had no effect is said again after so long, ms.
const AGAIN: i64 = 5_000;

/// What becomes of an action.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Done,
    Lost,
    Twice,
    Late(i64),
}

/// What goes wrong, or only happens.
#[derive(Debug, Clone, Copy)]
enum Happens {
    Nothing,
    Weather(Weather),
    Dies(usize),
    Notice(usize, i64),
    Spared(usize),
    Kept(usize),
    Duplicate(usize),
    Deaf(usize, i64),
    Restart,
    ClockBack(i64),
    Short(i64, bool),
    Long(i64),
}

#[derive(Debug, Clone)]
struct Step {
    passes: i64,
    happens: Happens,
    fates: Vec<Fate>,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Done),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Twice),
        1 => (250i64..10_000).prop_map(Fate::Late),
    ]
}

fn weather() -> impl Strategy<Value = Weather> {
    let slow = prop_oneof![Just(0), 0..20_000i64, 30_000..70_000i64];
    let bad = || prop::bool::weighted(0.2);
    let fields = (bad(), bad(), bad(), slow, bad(), bad());
    fields.prop_map(|(refuses, fails, broken, slow, away, broke)| Weather {
        refuses,
        fails,
        broken,
        slow,
        away,
        broke,
    })
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => Just(Happens::Nothing),
        2 => weather().prop_map(Happens::Weather),
        2 => (0..6usize).prop_map(Happens::Dies),
        3 => (0..6usize, 0..60_000i64).prop_map(|(at, for_ms)| Happens::Notice(at, for_ms)),
        1 => (0..6usize).prop_map(Happens::Spared),
        1 => (0..6usize).prop_map(Happens::Kept),
        1 => (0..6usize).prop_map(Happens::Duplicate),
        1 => (0..8usize, 500..90_000i64).prop_map(|(at, for_ms)| Happens::Deaf(at, for_ms)),
        1 => Just(Happens::Restart),
        1 => prop_oneof![1..2_000i64, 60_000..4_000_000i64].prop_map(Happens::ClockBack),
        4 => (500..90_000i64, prop::bool::weighted(0.9)).prop_map(|(ms, again)| Happens::Short(ms, again)),
        2 => (20_000..200_000i64).prop_map(Happens::Long),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let passes = prop_oneof![8 => Just(1_000i64), 2 => 100..3_000i64, 1 => 3_000..90_000i64];
    let fates = prop::collection::vec(fate(), 1..6);
    (passes, happens(), fates).prop_map(|(passes, happens, fates)| Step {
        passes,
        happens,
        fates,
    })
}

fn new_manager() -> Manager {
    let text = SETTINGS.replace("c[1-6]", "c[1-8]");
    manager_of(&text)
}

/// A controller, what it looks at, and what it has said.
struct Run {
    sim: Sim,
    manager: Manager,
    /// When it said last, by the world's time.
    said: BTreeMap<BurstAction, i64>,
    /// Nodes this controller has asked for and that did not come yet.
    asked: BTreeMap<String, i64>,
}

impl Run {
    fn happen(&mut self, happens: Happens) {
        let now = self.sim.now;
        match happens {
            Happens::Nothing => {}
            Happens::Weather(weather) => self.sim.weather = weather,
            Happens::Dies(at) => {
                if let Some(one) = self.sim.there(at) {
                    one.gone = Some(now);
                }
            }
            Happens::Notice(at, for_ms) => {
                if let Some(one) = self
                    .sim
                    .there(at)
                    .filter(|one| one.shown.status == Status::Active)
                {
                    one.shown.status = Status::Leaving;
                    one.shown.deadline_ms = Some(now + for_ms);
                }
            }
            Happens::Spared(at) => {
                if let Some(one) = self
                    .sim
                    .there(at)
                    .filter(|one| one.shown.status == Status::Leaving)
                {
                    one.shown.status = Status::Active;
                    one.shown.deadline_ms = None;
                }
            }
            Happens::Kept(at) => {
                if let Some(one) = self
                    .sim
                    .there(at)
                    .filter(|one| one.shown.status != Status::Coming)
                {
                    one.shown.status = Status::Kept;
                }
            }
            Happens::Duplicate(at) => self.sim.duplicate(at),
            Happens::Deaf(at, for_ms) => {
                self.sim.host(&format!("c{}", at + 1)).deaf_until = now + for_ms
            }
            Happens::Restart => {
                self.manager = new_manager();
                self.said.clear();
                self.asked.clear();
                for host in &mut self.sim.hosts {
                    host.foreign = true;
                }
            }
            Happens::ClockBack(by) => self.sim.skew -= by,
            Happens::Short(ms, requeues) => drop(self.sim.submit("short", ms, requeues)),
            Happens::Long(ms) => drop(self.sim.submit("long", ms, true)),
        }
    }

    /// Looks, checks what is said, and lets it happen.
    fn look(&mut self, fates: &[Fate]) -> Result<Vec<BurstAction>, TestCaseError> {
        let (at, manager) = (self.sim.clock(), &mut self.manager);
        let heard = self.sim.see(|world| common::look(manager, at, world));
        let now = self.sim.now;
        for action in &heard.actions {
            self.said.insert(action.clone(), now);
        }
        let own = |node: &str| {
            self.sim
                .hosts
                .iter()
                .any(|host| host.name == node && !host.foreign)
        };
        let there = self
            .sim
            .servers
            .iter()
            .filter(|one| one.shown.status.is_there());
        let there: BTreeSet<&str> = there.map(|one| one.shown.node.as_str()).collect();
        let bound = there.iter().filter(|node| own(node)).count() <= MOST;
        self.holds(
            bound,
            "at most K are there beside those that others have started",
        )?;
        let checked = self
            .sim
            .see(|world| promises(world, &heard, &self.said, &mut self.asked, now));
        if let Err(broken) = checked {
            let picture = self.sim.picture();
            return Err(TestCaseError::fail(format!(
                "{broken}\n{:#?}\n{picture}",
                heard.actions
            )));
        }
        for (action, fate) in heard.actions.iter().zip(fates.iter().cycle()) {
            match fate {
                Fate::Done => self.sim.act(action),
                Fate::Lost => {}
                Fate::Twice => {
                    self.sim.act(action);
                    self.sim.act(action);
                }
                Fate::Late(by) => self.sim.later.push((now + by, Later::Do(action.clone()))),
            }
        }
        Ok(heard.actions)
    }

    fn calm(&mut self, seconds: usize) -> Result<Vec<BurstAction>, TestCaseError> {
        let mut all = Vec::new();
        for _ in 0..seconds {
            self.sim.pass(1_000);
            all.extend(self.look(&[Fate::Done])?);
        }
        Ok(all)
    }

    fn holds(&self, holds: bool, promise: &str) -> Result<(), TestCaseError> {
        let picture = || format!("{promise}\n{}", self.sim.picture());
        if holds {
            Ok(())
        } else {
            Err(TestCaseError::fail(picture()))
        }
    }
}

/// What holds of each look.
fn promises(
    world: &ClusterSnapshot<'_>,
    heard: &Decisions,
    said: &BTreeMap<BurstAction, i64>,
    asked: &mut BTreeMap<String, i64>,
    now: i64,
) -> Result<(), String> {
    let there: BTreeSet<&str> = (world.instances.iter())
        .filter(|one| one.status.is_there())
        .map(|one| one.node.as_str())
        .collect();
    // A node that was asked for counts until it has its instance, or is down, or is away for longer
    // than an action may be late.
    asked.retain(|name, since| {
        let node = world.nodes.iter().find(|node| node.name == *name).unwrap();
        let comes =
            node.is_starting() || (node.is_off() && !node.is_down() && now - *since < 1_000);
        comes && !there.contains(name.as_str())
    });
    let fresh: Vec<&String> = (heard.actions.iter())
        .filter_map(|action| match action {
            BurstAction::PowerUp { node } => Some(node),
            _ => None,
        })
        .collect();
    for node in &fresh {
        asked.insert((*node).clone(), now);
    }
    let mut all = there.clone();
    all.extend(asked.keys().map(String::as_str));
    if !fresh.is_empty() && all.len() > MOST {
        return Err(format!(
            "never is one asked for that makes more than K: {all:?}"
        ));
    }
    if !fresh.is_empty() && world.budget_used_up {
        let repeated = "who may spend nothing asks for nothing";
        return Err(repeated.to_owned());
    }
    let leaves = |node: &str| {
        world
            .instance(node)
            .is_some_and(|one| one.status == Status::Leaving)
    };
    for action in &heard.actions {
        match action {
            BurstAction::Signal { job } | BurstAction::Requeue { job } => {
                let sound = world.jobs.iter().any(|one| {
                    one.id == *job
                        && one.state == JobState::Running
                        && one.nodes.iter().any(|node| leaves(node))
                });
                if !sound {
                    return Err(format!(
                        "only a job that runs on an instance with notice is moved: {action:?}"
                    ));
                }
            }
            BurstAction::PowerDown { node } | BurstAction::Down { node, .. } => {
                let up = world
                    .nodes
                    .iter()
                    .any(|one| one.name == *node && one.is_up() && one.is_drained());
                let active = world
                    .instance(node)
                    .is_some_and(|one| one.status == Status::Active);
                if up && active && world.jobs_on(node).next().is_some() {
                    return Err(format!("no job loses a node that is well: {node}"));
                }
            }
            BurstAction::PowerUp { node } if there.contains(node.as_str()) => {
                return Err(format!("a node with an instance is not asked for: {node}"));
            }
            _ => {}
        }
    }
    for node in world
        .nodes
        .iter()
        .filter(|node| leaves(&node.name) && node.in_service())
    {
        let is_for = |action: &BurstAction| match action {
            BurstAction::Drain { node: name, .. } | BurstAction::PowerDown { node: name } => {
                *name == node.name
            }
            _ => false,
        };
        let opens = BurstAction::Open {
            node: node.name.clone(),
        };
        let last = heard
            .actions
            .iter()
            .rfind(|one| is_for(one) || **one == opens);
        let recent = said
            .iter()
            .any(|(action, at)| is_for(action) && now - at < AGAIN + 1_000);
        if last == Some(&opens) || !recent {
            return Err(format!(
                "a node whose instance has notice takes nothing new: {}",
                node.name
            ));
        }
    }
    Ok(())
}

fn story(again: bool, steps: &[Step], long: u32) -> Result<(), TestCaseError> {
    let mut run = Run {
        sim: Sim::new(again),
        manager: new_manager(),
        said: BTreeMap::new(),
        asked: BTreeMap::new(),
    };
    for step in steps {
        run.happen(step.happens);
        run.sim.pass(step.passes);
        if let Happens::ClockBack(by) = step.happens {
            // The clock steps back, so the controller cannot observe that part of the time. The
            // times of its last actions move forward by it.
            run.said
                .values_mut()
                .for_each(|at| *at += by.min(step.passes));
        }
        run.look(&step.fates)?;
    }
    // No more faults. All jobs end, and enough long jobs without an end start.
    run.sim.weather = Weather::default();
    for host in &mut run.sim.hosts {
        host.deaf_until = 0;
    }
    run.calm(900)?;
    let over = run.sim.work.iter().all(|work| work.job.is_over());
    run.holds(over, "each job comes to its end")?;
    for work in &run.sim.work {
        let once = work.ends == 1 || (work.ends == 0 && !work.job.requeues);
        run.holds(once, "each job ends once")?;
    }
    run.sim.work.clear();
    for _ in 0..long {
        run.sim.submit("long", 1_000_000_000, true);
    }
    run.calm(200)?;
    // l / 0.25 - 2, at most K.
    let wanted = [0, 2, 6][long as usize];
    let (nodes, instances) = (run.sim.nodes(), run.sim.instances());
    let ours = nodes.iter().filter(|node| node.is_cloud());
    let serve = ours.clone().filter(|node| node.in_service()).count();
    let rest = ours
        .clone()
        .filter(|node| node.is_off() && !node.is_down() && node.is_drained());
    run.holds(serve == wanted, "as many nodes serve as are wanted")?;
    run.holds(rest.count() == 8 - wanted, "all others rest")?;
    run.holds(instances.len() == wanted, "each instance has its node")?;
    let more = run.calm(30)?;
    run.holds(
        more.is_empty(),
        &format!("nothing is said in a steady world: {more:?}"),
    )?;
    run.sim.work.clear();
    run.calm(60)?;
    let rests =
        |node: &ebbtide_burst::slurm::Node| node.is_off() && !node.is_down() && node.is_drained();
    let all = run
        .sim
        .nodes()
        .iter()
        .filter(|node| node.is_cloud())
        .all(rests);
    run.holds(
        all && run.sim.servers.is_empty(),
        "without jobs all is given back and rests",
    )?;
    let more = run.calm(30)?;
    run.holds(
        more.is_empty(),
        &format!("nothing is said of what rests: {more:?}"),
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_world_gone_wrong_is_put_right_and_nothing_is_said_any_more(
        again in any::<bool>(),
        steps in prop::collection::vec(step(), 0..90),
        long in 0..3u32,
    ) {
        story(again, &steps, long)?;
    }
}
