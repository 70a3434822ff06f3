//! Worlds by seed, over the code that production runs: the loop that drives a record, the ledger,
//! the reports of agents, adoption. Answers of Placement are lost, agents fail or stay silent,
//! callers leave, connections break, and schedulers are killed wherever they wait.
//!
//! The evacuation simulator goes through thousands of times as many worlds in the same time, with a
//! model of that loop and without waiting.

mod guests;
mod life;
mod request;

use self::guests::Guests;
use self::life::SchedulerProcess;
use super::LONG;
use super::full_host::{FullHost, VICTIM, on_host, victim};
use crate::preemption::{Preemption, PreemptionState};
use ebbtide_model::Timestamp;
use ebbtide_placement_model::{ScriptedStep, TransportFault};
use ebbtide_store::ledger::UsageFilter;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Every world of a run. A failure names its seed.
const SEEDS: std::ops::Range<u64> = 0..48;
/// How many go on at the same time: they wait more than they reckon.
const AT_ONCE: usize = 12;

/// What came of a world, so that a run of quiet ones does not pass.
#[derive(Debug, Default, Clone, Copy)]
struct Ends {
    done: usize,
    called_off: usize,
    killed: usize,
    lifetimes: usize,
    ended_guests: usize,
}

struct SeededWorld {
    seed: u64,
    full: Arc<FullHost>,
    guests: Mutex<Guests>,
    lives: [Mutex<Option<SchedulerProcess>>; 2],
    over: CancellationToken,
    story: Mutex<Vec<String>>,
}

impl SeededWorld {
    /// A stream of chance for one purpose.
    fn chance(&self, purpose: u64) -> Pcg64 {
        Pcg64::seed_from_u64(self.seed.wrapping_mul(1000) + purpose)
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn life(&self, who: usize) -> MutexGuard<'_, Option<SchedulerProcess>> {
        let life = self.lives.get(who).unwrap();
        life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, line: String) {
        let mut story = self.story.lock().unwrap_or_else(PoisonError::into_inner);
        story.push(line);
    }

    /// A promise that has to hold.
    #[track_caller]
    fn promise(&self, holds: bool, promise: impl FnOnce() -> String) {
        if holds {
            return;
        }
        let story = self.story.lock().unwrap_or_else(PoisonError::into_inner);
        panic!("seed {}: {}\n{}", self.seed, promise(), story.join("\n"));
    }

    /// What goes wrong between schedulers and Placement.
    fn disturb_placement(&self) {
        let mut chance = self.chance(1);
        for _ in 0..chance.random_range(0..4) {
            let fault = match chance.random_range(0..4) {
                0 => TransportFault::AnswerLost,
                1 => TransportFault::NotHeard,
                2 => TransportFault::Refused(409),
                _ => TransportFault::Refused(503),
            };
            let skip = chance.random_range(0..6);
            let placement = &self.full.bench.placement;
            placement.plan("POST /allocations", skip, 1, ScriptedStep::Fault(fault));
        }
    }

    /// Kills schedulers, starts them again, and breaks their connections to the broker.
    async fn disturb_schedulers(&self) -> usize {
        let mut chance = self.chance(2);
        let mut killed = 0;
        for _ in 0..chance.random_range(0..4) {
            tokio::time::sleep(Duration::from_millis(chance.random_range(50..1200))).await;
            let who = chance.random_range(0..2);
            if chance.random_range(0..3) == 0 {
                self.tell(format!("scheduler {who} loses its connection"));
                if let Some(life) = &*self.life(who) {
                    life.sever();
                }
                continue;
            }
            let life = self.life(who).take();
            let Some(life) = life else { continue };
            life.kill().await;
            killed += 1;
            self.tell(format!("scheduler {who} is killed"));
            tokio::time::sleep(Duration::from_millis(chance.random_range(0..1500))).await;
            let again = SchedulerProcess::begin(&self.full, who).await;
            *self.life(who) = Some(again);
            self.tell(format!("scheduler {who} is back"));
        }
        killed
    }

    /// Placement never holds more than there is.
    async fn watch_placement(&self) {
        while !self.over.is_cancelled() {
            let over = self
                .full
                .bench
                .placement
                .model(|model| model.over_capacity());
            self.promise(over.is_empty(), || {
                format!("too much is allocated: {over:?}")
            });
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Waits until no record is open.
    async fn settles(&self) {
        let settled = async {
            while !self.full.ledger.open_rows().await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let settled = tokio::time::timeout(LONG, settled).await;
        let open = self.full.ledger.open_rows().await.unwrap();
        self.promise(settled.is_ok(), || format!("these never end: {open:#?}"));
    }

    /// What has to be true when everything is over.
    async fn holds_at_the_end(&self) -> Ends {
        let rows = self.full.ledger.rows_of_late(3_600_000).await.unwrap();
        let records: Vec<Preemption> = rows
            .into_iter()
            .map(|row| serde_json::from_value(row.document).unwrap())
            .collect();
        let usage = self
            .full
            .ledger
            .usage(&UsageFilter::default())
            .await
            .unwrap();
        let mut bills: BTreeMap<Uuid, usize> = BTreeMap::new();
        for bill in &usage {
            *bills.entry(bill.usage.server_id).or_default() += 1;
        }
        let mut ends = Ends::default();
        let runs = |server: Uuid| self.guests().runs(server);
        for record in &records {
            let done = record.state == PreemptionState::Done;
            ends.lifetimes += usize::from(record.newcomers.is_empty());
            match done {
                true => ends.done += 1,
                false => ends.called_off += 1,
            }
            for gone in record.victims.iter().filter(|_| done) {
                let server = gone.server.0;
                self.promise(!runs(server), || {
                    format!("{server} runs on in a room given away")
                });
                let bills = bills.get(&server).copied().unwrap_or(0);
                self.promise(bills == 1, || format!("{server} has {bills} usage records"));
            }
            for newcomer in &record.newcomers {
                let (instance, has) = (newcomer.instance, self.full.has(newcomer.instance));
                let stays = done && self.guests().started(instance);
                let due = match stays {
                    true => crate::facts::amounts(&newcomer.claim.allocations),
                    false => BTreeMap::new(),
                };
                self.promise(has == due, || {
                    format!("{instance} of a {:?} record holds {has:?}", record.state)
                });
            }
        }
        for server in (1..=4).map(victim) {
            let due = match runs(server) {
                true => on_host(&VICTIM),
                false => BTreeMap::new(),
            };
            let has = self.full.has(server);
            let lives = runs(server);
            self.promise(has == due, || {
                format!("{server} (runs: {lives}) holds {has:?}")
            });
        }
        ends.ended_guests = self.guests().ended();
        ends
    }
}

async fn world(seed: u64) -> Ends {
    let mut full = FullHost::new().await;
    let agent = full.take_agent();
    let full = Arc::new(full);
    let lives = [
        Mutex::new(Some(SchedulerProcess::begin(&full, 0).await)),
        Mutex::new(Some(SchedulerProcess::begin(&full, 1).await)),
    ];
    let world = Arc::new(SeededWorld {
        seed,
        full,
        guests: Mutex::default(),
        lives,
        over: CancellationToken::new(),
        story: Mutex::default(),
    });
    world.disturb_placement();
    let count = world.chance(3).random_range(1..=3);
    let lifetimes = world.chance(5).random_range(0..=2);
    let requests = async {
        let asked = (1..=count).map(|n| world.request(n));
        let ending = (1..=lifetimes).map(|n| world.lifetime_ends(n));
        let (killed, _, _) = tokio::join!(
            world.disturb_schedulers(),
            futures::future::join_all(asked),
            futures::future::join_all(ending)
        );
        world.settles().await;
        world.over.cancel();
        killed
    };
    let (killed, (), ()) = tokio::join!(requests, world.play(agent), world.watch_placement());
    let ends = world.holds_at_the_end().await;
    Ends { killed, ..ends }
}

/// The present time, for notices that have to be begun in time.
fn now() -> Timestamp {
    ebbtide_runtime::clock::now()
}

/// The seeds to go through: `EBBTIDE_WORLDS=FROM..TO` asks for others.
fn seeds() -> std::ops::Range<u64> {
    let Ok(asked) = std::env::var("EBBTIDE_WORLDS") else {
        return SEEDS;
    };
    let (from, to) = asked.split_once("..").expect("EBBTIDE_WORLDS=FROM..TO");
    from.parse().unwrap()..to.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn promises_hold_whatever_happens() {
    use futures::StreamExt;
    let seeds = seeds();
    let count = usize::try_from(seeds.end - seeds.start).unwrap();
    let worlds = futures::stream::iter(seeds.map(world)).buffer_unordered(AT_ONCE);
    let ends: Vec<Ends> = worlds.collect().await;
    assert_eq!(ends.len(), count);
    let sum = |of: fn(&Ends) -> usize| ends.iter().map(of).sum::<usize>();
    let counts = [
        ("done", sum(|e| e.done)),
        ("called off", sum(|e| e.called_off)),
        ("schedulers killed", sum(|e| e.killed)),
        ("lifetimes over", sum(|e| e.lifetimes)),
        ("guests ended", sum(|e| e.ended_guests)),
    ];
    println!("{count} worlds: {counts:?}");
    // So many that none of it can be missing by chance.
    let lively = count < 40 || counts.iter().all(|(_, n)| *n >= count / 5);
    assert!(lively, "too little happened: {counts:?}");
}
