//! The world: servers, jobs, and what happens next.

use super::central::CentralScheduler;
use super::event::{Agenda, QueuedEvent};
use super::meter::Meter;
use super::outcome::{MeasuredTimes, SimulationResult, Transients};
use super::pool::ServerPool;
use super::server::{Activity, Admission, JobProgress, ShortTask, SimulatedServer};
use super::setup::Setup;
use super::shared::SharedQueue;
use super::watch::{ServerRole, Watch, WatchEvent};
use crate::controller::Controller;
use crate::error::ElasticError;
use crate::policy::long_load_ratio;
use crate::trace::{Trace, TraceJob};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// Apart from the probes' chance: who is interrupted when does not depend on how many probes there
/// are.
const FATE: u64 = 0x9e37_79b9_7f4a_7c15;

pub(crate) struct ClusterSimulation<'a> {
    pub(super) trace: &'a Trace,
    pub(super) setup: &'a Setup,
    watch: &'a mut dyn Watch,
    pub(super) now_us: u64,
    pub(super) agenda: Agenda,
    pub(super) servers: Vec<SimulatedServer>,
    pub(super) jobs: Vec<JobProgress>,
    /// General servers without long tasks.
    pub(super) clean: ServerPool,
    /// Transient servers that take tasks.
    pub(super) transients: ServerPool,
    /// Long jobs' scheduler; its servers are the first ones here.
    pub(super) central: CentralScheduler,
    pub(super) controller: Option<Controller>,
    /// Short tasks that wait, if all servers share a queue.
    pub(super) shared: Option<SharedQueue>,
    pub(super) probing: Pcg64Mcg,
    pub(super) fate: Pcg64Mcg,
    /// When the next tick is due.
    pub(super) tick_us: Option<u64>,
    pub(super) load_changed: bool,
    pub(super) tally: Tally,
}

/// What is counted on the way.
pub(super) struct Tally {
    pub(super) short: Vec<u64>,
    pub(super) long: Vec<u64>,
    short_jobs: Vec<u64>,
    long_jobs: Vec<u64>,
    on_transients: u64,
    pub(super) lost: u64,
    pub(super) lost_us: u64,
    pub(super) again: Vec<u64>,
    pub(super) most_losses: u32,
    pub(super) launched: u64,
    pub(super) interrupted: u64,
    pub(super) lives: Vec<u64>,
    pub(super) most: u32,
    pub(super) paid_us: u64,
    pub(super) up: Meter,
    load: Meter,
    above: Meter,
}

impl<'a> ClusterSimulation<'a> {
    pub(crate) fn new(
        trace: &'a Trace,
        setup: &'a Setup,
        watch: &'a mut dyn Watch,
    ) -> Result<Self, ElasticError> {
        setup.checked()?;
        let long = |job: &&TraceJob| job.estimate_us > setup.cluster.cutoff_us;
        let long_jobs = trace.jobs().iter().filter(long).count();
        if long_jobs > 0 && setup.general() == 0 {
            return Err(ElasticError::NoRoom {
                jobs: long_jobs,
                servers: setup.cluster.servers,
            });
        }
        let general = setup.general();
        let server = |place| SimulatedServer::new(place, Admission::Open, 0);
        let mut servers = vec![server(ServerRole::General); general as usize];
        let short_only = vec![server(ServerRole::ShortOnly); setup.short_on_demand() as usize];
        servers.extend(short_only);
        let from = trace.jobs().first().map_or(0, |job| job.arrival_us);
        let until = trace.jobs().last().map_or(0, |job| job.arrival_us);
        let meter = Meter::new(from, until);
        let mut agenda = Agenda::default();
        agenda.put(from, QueuedEvent::Job(0));
        let outage_us = setup
            .elastic
            .as_ref()
            .map_or(0, |elastic| elastic.outage_us);
        if outage_us > 0 {
            agenda.put(from + outage_us, QueuedEvent::Outage);
        }
        let shares = setup.cluster.recovery.shares_queue();
        let on_demand = general + setup.short_on_demand();
        let shared = shares.then(|| SharedQueue::new(general, on_demand));
        Ok(Self {
            trace,
            setup,
            watch,
            now_us: 0,
            agenda,
            servers,
            jobs: vec![JobProgress::default(); trace.jobs().len()],
            clean: ServerPool::of(0..general),
            transients: ServerPool::default(),
            central: CentralScheduler::new(general),
            controller: setup
                .elastic
                .as_ref()
                .map(|elastic| Controller::new(elastic.policy)),
            probing: Pcg64Mcg::seed_from_u64(setup.seed),
            fate: Pcg64Mcg::seed_from_u64(setup.seed ^ FATE),
            shared,
            tick_us: None,
            load_changed: false,
            tally: Tally {
                short: Vec::new(),
                long: Vec::new(),
                short_jobs: Vec::new(),
                long_jobs: Vec::new(),
                on_transients: 0,
                lost: 0,
                lost_us: 0,
                again: Vec::new(),
                most_losses: 0,
                launched: 0,
                interrupted: 0,
                lives: Vec::new(),
                most: 0,
                paid_us: 0,
                up: meter,
                load: meter,
                above: meter,
            },
        })
    }

    /// Lets the next thing happen; false if there is nothing more.
    pub(crate) fn step(&mut self) -> Result<bool, ElasticError> {
        let Some((at_us, coming)) = self.agenda.take() else {
            return Ok(false);
        };
        self.now_us = at_us;
        match coming {
            QueuedEvent::Job(job) => self.arrive(job),
            QueuedEvent::Probes { job, round, sent } => self.probes_arrive(job, round, &sent)?,
            QueuedEvent::Tasks { job, placed } => self.tasks_arrive(job, &placed)?,
            QueuedEvent::Free { server, turn } => self.free(server, turn)?,
            QueuedEvent::Up(id) => self.up(id)?,
            QueuedEvent::Notice(id) => self.noticed(id)?,
            QueuedEvent::Interrupted(id) => self.interrupted(id)?,
            QueuedEvent::Outage => self.outage()?,
            QueuedEvent::Tick => self.tick()?,
        }
        if self.load_changed {
            self.load_changed = false;
            self.report_load()?;
        }
        Ok(true)
    }

    pub(super) fn record(&mut self, what: WatchEvent) {
        self.watch.record(self.now_us, what);
    }

    pub(super) fn job(&self, job: u32) -> Option<&'a TraceJob> {
        self.trace.jobs().get(job as usize)
    }

    pub(super) fn estimate_us(&self, job: u32) -> u64 {
        self.job(job).map_or(0, |job| job.estimate_us)
    }

    pub(super) fn is_long_job(&self, job: u32) -> bool {
        self.estimate_us(job) > self.setup.cluster.cutoff_us
    }

    /// True if long tasks run on this server, wait there or are on their way.
    pub(super) fn has_long(&self, server: u32) -> bool {
        server < self.setup.general() && self.central.is_long(server)
    }

    /// N_long.
    pub(super) fn long_servers(&self) -> u32 {
        self.setup.general() - self.clean.len()
    }

    /// Servers that are not preemptible.
    pub(super) fn on_demand_servers(&self) -> u32 {
        self.setup.general() + self.setup.short_on_demand()
    }

    fn arrive(&mut self, number: u32) {
        let Some(job) = self.job(number) else {
            return;
        };
        if let Some(next) = self.job(number + 1) {
            self.agenda
                .put(next.arrival_us, QueuedEvent::Job(number + 1));
        }
        let long = self.is_long_job(number);
        self.record(WatchEvent::Arrived { job: number, long });
        let cluster = &self.setup.cluster;
        // The last one is the next: turned round, they begin in the order of the trace.
        let tasks = job.tasks_us.iter().rev().map(|us| ShortTask {
            us: cluster.task_us(*us),
            ..ShortTask::default()
        });
        if let Some(progress) = self.jobs.get_mut(number as usize) {
            progress.left = tasks.collect();
        }
        if long {
            self.place_long(number);
        } else if self.shared.is_some() {
            self.enqueue(number);
        } else {
            self.send_probes(number);
        }
    }

    /// A server is done with what it did.
    fn free(&mut self, number: u32, turn: u32) -> Result<(), ElasticError> {
        let Some(server) = self.servers.get_mut(number as usize) else {
            return Ok(());
        };
        // An interrupted server's task never ends.
        if server.turn != turn || server.standing == Admission::Gone {
            return Ok(());
        }
        let doing = std::mem::replace(&mut server.doing, Activity::Idle);
        match doing {
            Activity::Idle => Ok(()),
            Activity::Asking => self.next(number),
            Activity::Short { job, began_us, .. } => {
                let arrival_us = self.job(job).map_or(0, |job| job.arrival_us);
                self.tally.short.push(began_us - arrival_us);
                self.ended(number, job);
                if self.shared.is_none() && self.stick(number, job) {
                    return Ok(());
                }
                self.next(number)
            }
            Activity::Long { job } => {
                self.ended(number, job);
                self.long_ended(number);
                self.next(number)
            }
        }
    }

    /// What an idle server does next: short tasks first, since no probe comes to where a long task
    /// is; then long ones.
    pub(super) fn next(&mut self, number: u32) -> Result<(), ElasticError> {
        if self.next_short(number) || self.next_long(number) {
            return Ok(());
        }
        self.report_drained(number)
    }

    /// It is busy until then.
    pub(super) fn begin(&mut self, number: u32, doing: Activity, until_us: u64) {
        self.no_longer_idle(number);
        if let Some(server) = self.servers.get_mut(number as usize) {
            server.turn += 1;
            server.doing = doing;
            let turn = server.turn;
            let server = number;
            self.agenda
                .put(until_us, QueuedEvent::Free { server, turn });
        }
    }

    fn ended(&mut self, server: u32, number: u32) {
        let transient = self
            .servers
            .get(server as usize)
            .is_some_and(|server| server.place == ServerRole::Transient);
        self.record(WatchEvent::Ended {
            job: number,
            server,
        });
        let (Some(job), Some(progress)) = (self.job(number), self.jobs.get_mut(number as usize))
        else {
            return;
        };
        progress.done += 1;
        if transient {
            progress.on_transients -= 1;
            self.tally.on_transients += 1;
            // One task fewer that could be lost: its copy is not needed any more.
            if progress.copies > progress.uncovered() && progress.parked.pop().is_some() {
                progress.copies -= 1;
            }
        }
        if progress.done as usize == job.tasks_us.len() {
            let took = self.now_us - job.arrival_us;
            if self.is_long_job(number) {
                self.tally.long_jobs.push(took);
            } else {
                self.tally.short_jobs.push(took);
            }
        }
    }

    /// Measures the load; to be called whenever it has changed.
    pub(super) fn measure(&mut self) {
        let controller = self.controller.as_ref();
        let up = controller.map_or(0, |controller| controller.census().up());
        let ratio = long_load_ratio(self.long_servers(), self.on_demand_servers() + up);
        let above = self
            .setup
            .elastic
            .as_ref()
            .is_some_and(|elastic| ratio > elastic.policy.threshold_ratio());
        self.tally.up.set(self.now_us, f64::from(up));
        self.tally.load.set(self.now_us, ratio);
        self.tally
            .above
            .set(self.now_us, f64::from(u8::from(above)));
    }

    pub(crate) fn outcome(mut self) -> SimulationResult {
        self.settle();
        let tally = self.tally;
        SimulationResult {
            short: MeasuredTimes::new(tally.short),
            long: MeasuredTimes::new(tally.long),
            short_jobs: MeasuredTimes::new(tally.short_jobs),
            long_jobs: MeasuredTimes::new(tally.long_jobs),
            on_transients: tally.on_transients,
            lost: tally.lost,
            lost_seconds: tally.lost_us as f64 / 1e6,
            again: MeasuredTimes::new(tally.again),
            most_losses: tally.most_losses,
            mean_long_load: tally.load.mean(),
            above_threshold: tally.above.mean(),
            transients: Transients {
                launched: tally.launched,
                interrupted: tally.interrupted,
                lives: MeasuredTimes::new(tally.lives),
                mean_up: tally.up.mean(),
                most: tally.most,
                paid_hours: tally.paid_us as f64 / 3.6e9,
            },
            end_us: self.now_us,
        }
    }
}
