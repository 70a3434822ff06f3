//! The cluster over time: from one event to the next.

use super::{BagRun, BatchRun, BatchService, ReuseRule, STABLE};
use crate::Lifetime;
use crate::error::LifetimeError;
use crate::plan::{RunningTime, keeps};
use rand_pcg::Pcg64;
use std::collections::{BTreeMap, HashMap};

/// A bag with so many preemptions never ends: jobs nearly as long as lives.
const MOST_PREEMPTIONS: u32 = 1_000_000;

/// What an instance does.
#[derive(Debug, Clone, Copy, PartialEq)]
enum InstanceState {
    /// Until this time.
    Booting(f64),
    /// Since this time.
    Idle(f64),
    /// The job with this number.
    Busy(u64),
}

struct Instance {
    launched: f64,
    ends: f64,
    doing: InstanceState,
}

struct IdleInstance {
    id: u64,
    launched: f64,
    since: f64,
}

struct RunningJob {
    began: f64,
    instances: Vec<u64>,
}

/// What happens next.
enum Event {
    Ready(u64),
    Ended(u64),
    SpareOver(u64),
    Done(u64),
}

pub(super) struct BatchSimulation<'a> {
    service: &'a BatchService,
    lives: Option<(&'a dyn Lifetime, Pcg64)>,
    now: f64,
    instances: BTreeMap<u64, Instance>,
    running: BTreeMap<u64, RunningJob>,
    waiting: u32,
    bags_left: u32,
    /// Numbers of instances and jobs.
    next: u64,
    launched: u32,
    paid: f64,
    /// The bag that is played.
    began: f64,
    preemptions: u32,
    lost: f64,
    /// Whether an instance so many minutes old is worth keeping.
    kept: HashMap<u64, bool>,
}

impl<'a> BatchSimulation<'a> {
    pub(super) fn new(service: &'a BatchService, lives: Option<(&'a dyn Lifetime, Pcg64)>) -> Self {
        Self {
            service,
            lives,
            now: 0.0,
            instances: BTreeMap::new(),
            running: BTreeMap::new(),
            waiting: service.jobs,
            bags_left: service.bags - 1,
            next: 0,
            launched: 0,
            paid: 0.0,
            began: 0.0,
            preemptions: 0,
            lost: 0.0,
            kept: HashMap::new(),
        }
    }

    pub(super) fn run(mut self) -> Result<BatchRun, LifetimeError> {
        let mut bags = Vec::new();
        loop {
            self.assign()?;
            if self.waiting == 0 && self.running.is_empty() {
                bags.push(BagRun {
                    hours: self.now - self.began,
                    preemptions: self.preemptions,
                    lost: self.lost,
                });
                if self.bags_left == 0 {
                    break;
                }
                self.bags_left -= 1;
                self.waiting = self.service.jobs;
                (self.began, self.preemptions, self.lost) = (self.now, 0, 0.0);
                continue;
            }
            let Some((time, event)) = self.event() else {
                break;
            };
            self.now = time;
            self.take(event);
            if self.preemptions > MOST_PREEMPTIONS {
                return Err(LifetimeError::Question {
                    what: "the length of the job",
                    value: self.service.length,
                    allowed: "so short that jobs end before their instances do".to_owned(),
                });
            }
        }
        self.leave();
        Ok(BatchRun {
            bags,
            paid: self.paid,
            launched: self.launched,
        })
    }

    /// Launches what is missing, starts jobs, and releases what has nothing to do.
    fn assign(&mut self) -> Result<(), LifetimeError> {
        let per_job = self.service.per_job as usize;
        loop {
            self.launch();
            if self.waiting == 0 {
                break;
            }
            let mut idle: Vec<IdleInstance> = self.idle().collect();
            // Whatever has waited longest is first, as in a queue of free nodes. The oldest first
            // would be a rule of its own: a job that fails on one old instance would get the next.
            idle.sort_by(|a, b| a.since.total_cmp(&b.since).then(a.id.cmp(&b.id)));
            let mut replaced = false;
            let mut good = Vec::new();
            for one in idle {
                if self.worth(self.now - one.launched)? {
                    good.push(one.id);
                } else {
                    self.end(one.id);
                    replaced = true;
                }
            }
            if replaced {
                continue;
            }
            let Some(chosen) = good.get(..per_job) else {
                break;
            };
            let job = self.number();
            for id in chosen {
                if let Some(instance) = self.instances.get_mut(id) {
                    instance.doing = InstanceState::Busy(job);
                }
            }
            let began = self.now;
            let instances = chosen.to_vec();
            self.running.insert(job, RunningJob { began, instances });
            self.waiting -= 1;
        }
        if self.waiting == 0 {
            let (now, keeps, more) = (self.now, self.keeps_idle(), self.bags_left > 0);
            let useless = self.idle().filter(|one| {
                let stable = now - one.launched >= STABLE;
                !(keeps && (more || stable))
            });
            let useless: Vec<u64> = useless.map(|one| one.id).collect();
            for id in useless {
                self.end(id);
            }
        }
        Ok(())
    }

    /// Whether an instance without work can be worth its price: on demand a new one is as good.
    fn keeps_idle(&self) -> bool {
        self.lives.is_some()
    }

    /// The instances that run no job.
    fn idle(&self) -> impl Iterator<Item = IdleInstance> + '_ {
        self.instances.iter().filter_map(|(id, instance)| {
            let InstanceState::Idle(since) = instance.doing else {
                return None;
            };
            let launched = instance.launched;
            Some(IdleInstance {
                id: *id,
                launched,
                since,
            })
        })
    }

    fn launch(&mut self) {
        let all = u64::from(self.service.instances);
        let jobs = u64::from(self.waiting) + self.running.len() as u64;
        let useful = jobs * u64::from(self.service.per_job);
        let wanted = if self.bags_left > 0 && self.keeps_idle() {
            all
        } else {
            all.min(useful)
        };
        while (self.instances.len() as u64) < wanted {
            let id = self.number();
            let life = match &mut self.lives {
                Some((model, chance)) => model.sample(chance),
                None => f64::INFINITY,
            };
            let instance = Instance {
                launched: self.now,
                ends: self.now + life,
                doing: InstanceState::Booting(self.now + self.service.boot),
            };
            self.instances.insert(id, instance);
            self.launched += 1;
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whether an instance of `age` gets a job; decided for whole minutes of age.
    fn worth(&mut self, age: f64) -> Result<bool, LifetimeError> {
        let Some((model, _)) = &self.lives else {
            return Ok(true);
        };
        if self.service.reuse == ReuseRule::Always {
            return Ok(true);
        }
        let minute = (age * 60.0).floor().max(0.0) as u64;
        if let Some(kept) = self.kept.get(&minute) {
            return Ok(*kept);
        }
        let age = minute as f64 / 60.0;
        let kept = keeps(*model, age, self.service.length, RunningTime::UntilDone)?;
        self.kept.insert(minute, kept);
        Ok(kept)
    }

    /// The earliest event; of equal times a finished job before an ended instance.
    fn event(&self) -> Option<(f64, Event)> {
        let length = self.service.length;
        let done = self.running.iter();
        let done = done.map(|(id, job)| (job.began + length, Event::Done(*id)));
        let others = self.instances.iter().flat_map(|(id, instance)| {
            let next = match instance.doing {
                InstanceState::Booting(ready) => Some((ready, Event::Ready(*id))),
                InstanceState::Idle(since) if self.waiting == 0 && self.bags_left == 0 => {
                    Some((since + self.service.spare, Event::SpareOver(*id)))
                }
                InstanceState::Idle(_) | InstanceState::Busy(_) => None,
            };
            next.into_iter().chain([(instance.ends, Event::Ended(*id))])
        });
        let all = done.chain(others).filter(|(time, _)| time.is_finite());
        all.min_by(|a, b| a.0.total_cmp(&b.0))
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Ready(id) => {
                if let Some(instance) = self.instances.get_mut(&id) {
                    instance.doing = InstanceState::Idle(self.now);
                }
            }
            Event::SpareOver(id) => self.end(id),
            Event::Done(id) => {
                if let Some(job) = self.running.remove(&id) {
                    self.free(&job.instances);
                }
            }
            Event::Ended(id) => {
                let doing = self.instances.get(&id).map(|instance| instance.doing);
                self.end(id);
                self.preemptions += 1;
                let Some(InstanceState::Busy(job)) = doing else {
                    return;
                };
                if let Some(job) = self.running.remove(&job) {
                    self.lost += (self.now - job.began) * f64::from(self.service.per_job);
                    self.waiting += 1;
                    self.free(&job.instances);
                }
            }
        }
    }

    /// The instances of a job have nothing to do; one of them may be gone.
    fn free(&mut self, instances: &[u64]) {
        for id in instances {
            if let Some(instance) = self.instances.get_mut(id) {
                instance.doing = InstanceState::Idle(self.now);
            }
        }
    }

    /// The instance is gone and paid.
    fn end(&mut self, id: u64) {
        if let Some(instance) = self.instances.remove(&id) {
            self.paid += self.now - instance.launched;
        }
    }

    /// After the last job: spares stay for their time or until they end.
    fn leave(&mut self) {
        let spare = self.service.spare;
        for instance in std::mem::take(&mut self.instances).into_values() {
            let until = match instance.doing {
                InstanceState::Idle(since) => (since + spare).min(instance.ends).max(self.now),
                InstanceState::Booting(_) | InstanceState::Busy(_) => self.now,
            };
            self.paid += until - instance.launched;
        }
    }
}
