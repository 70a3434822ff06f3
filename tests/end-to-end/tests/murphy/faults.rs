//! What goes wrong: four lanes beside each other, each with its own dice of the same seed.

use ebbtide_bench::seeded::SeededNumbers;
use ebbtide_harness::{Deadline, MariaDb, Postgres, PrivateServer, RabbitMq, ServerKind, Signal};
use ebbtide_integration_tests::{Peer, Region, bin};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(20);

/// What has gone wrong so far.
#[derive(Debug, Default)]
pub(crate) struct FaultLog(Mutex<BTreeMap<&'static str, u64>>);

impl FaultLog {
    fn note(&self, what: &'static str) {
        *self.0.lock().unwrap().entry(what).or_default() += 1;
    }

    pub(crate) fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn total(&self) -> u64 {
        self.counts().values().sum()
    }
}

/// Until when things go wrong, and where that is written down.
pub(crate) struct FaultSchedule<'a> {
    pub(crate) dice: SeededNumbers,
    pub(crate) end: Deadline,
    pub(crate) diary: &'a FaultLog,
}

impl FaultSchedule<'_> {
    fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.dice.below(to - from))
    }

    async fn pause(&mut self, from: u64, to: u64) {
        let pause = self.millis(from, to).min(self.end.remaining());
        tokio::time::sleep(pause).await;
    }
}

/// Agents die or stand still, several at a time.
pub(crate) async fn agents(mut schedule: FaultSchedule<'_>, region: &mut Region, hosts: &[String]) {
    enum Hurt {
        Dead,
        Still,
    }
    let mut hurt: Vec<(Deadline, String, Hurt)> = Vec::new();
    let mut next = Deadline::after(Duration::ZERO);
    while !schedule.end.has_passed() || !hurt.is_empty() {
        while let Some(at) = hurt
            .iter()
            .position(|(until, ..)| until.has_passed() || schedule.end.has_passed())
        {
            let (_, host, how) = hurt.swap_remove(at);
            match how {
                Hurt::Dead => region.start_agent(&host).unwrap(),
                Hurt::Still => region.signal_agent(&host, Signal::Cont).unwrap(),
            }
        }
        if next.has_passed() && !schedule.end.has_passed() {
            next = Deadline::after(schedule.millis(300, 2000));
            let host = &hosts[schedule.dice.below(hosts.len() as u64) as usize];
            if hurt.iter().any(|(_, name, _)| name == host) {
                continue;
            }
            let (how, until) = match schedule.dice.below(5) {
                0..3 => {
                    region.kill_agent(host);
                    schedule.diary.note("agent killed");
                    (Hurt::Dead, schedule.millis(0, 1500))
                }
                _ => {
                    region.signal_agent(host, Signal::Stop).unwrap();
                    schedule.diary.note("agent stopped for a while");
                    (Hurt::Still, schedule.millis(200, 4000))
                }
            };
            hurt.push((Deadline::after(until), host.clone(), how));
        }
        tokio::time::sleep(TICK).await;
    }
}

/// All schedulers of the region, and how each is started.
pub(crate) struct Schedulers {
    pub(crate) dir: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) running: Vec<(String, Option<Peer>)>,
    /// Programs of another version, by the name of the scheduler.
    pub(crate) programs: BTreeMap<String, PathBuf>,
}

impl Schedulers {
    /// Starts all that do not run, as a supervisor does, again and again.
    pub(crate) async fn start(&mut self) {
        for (name, peer) in &mut self.running {
            if peer.as_ref().is_some_and(|peer| !peer.has_ended()) {
                continue;
            }
            *peer = None;
            let _ = std::fs::remove_file(self.dir.join(format!("ready-{name}.json")));
            let mut attempts = 0;
            while peer.is_none() {
                let program = self.programs.get(name.as_str());
                let program = program.map_or_else(|| bin("ebbtide-scheduler"), Clone::clone);
                match Peer::start_of(&program, &self.dir, &self.config, name).await {
                    Ok(started) => *peer = Some(started),
                    // The database is away: it says so and ends.
                    Err(error) => {
                        attempts += 1;
                        assert!(attempts < 200, "{error:#}");
                        tokio::time::sleep(Duration::from_millis(300)).await;
                    }
                }
            }
        }
    }
}

/// Schedulers die or stand still for longer than their lease.
pub(crate) async fn schedulers(mut schedule: FaultSchedule<'_>, schedulers: &mut Schedulers) {
    while !schedule.end.has_passed() {
        schedule.pause(3000, 11_000).await;
        let at = schedule.dice.below(schedulers.running.len() as u64) as usize;
        let peer = &mut schedulers.running[at].1;
        match (schedule.dice.below(3), peer.take()) {
            (0..2, Some(there)) => {
                there.kill();
                schedule.diary.note("scheduler killed");
                schedule.pause(0, 1500).await;
            }
            (_, Some(there)) => {
                // It may have ended by itself: another one has taken its place.
                if there.signal(Signal::Stop).is_ok() {
                    schedule.diary.note("scheduler stopped for a while");
                    schedule.pause(500, 5000).await;
                    let _ = there.signal(Signal::Cont);
                }
                *peer = Some(there);
            }
            (_, None) => {}
        }
        schedulers.start().await;
    }
    schedulers.start().await;
}

/// The broker dies, stands still, loses messages, loses queues.
pub(crate) async fn broker(
    mut schedule: FaultSchedule<'_>,
    broker: &mut RabbitMq,
    prefix: &str,
    hosts: &[String],
) {
    // The rarest of it also happens on a short day.
    let mut first = true;
    while !schedule.end.has_passed() {
        schedule.pause(500, 5500).await;
        let host = &hosts[schedule.dice.below(hosts.len() as u64) as usize];
        let (agent, scheduler) = (
            format!("{prefix}.agent.{host}"),
            format!("{prefix}.scheduler"),
        );
        let what = match std::mem::take(&mut first) {
            true => 12,
            false => schedule.dice.below(14),
        };
        // A queue that is not there at this moment is as good as purged.
        match what {
            0..4 => {
                let _ = broker.purge(&agent).await;
                schedule.diary.note("agent's queue purged");
            }
            4..7 => {
                let _ = broker.purge(&scheduler).await;
                schedule.diary.note("schedulers' queue purged");
            }
            7..10 => {
                let _ = broker.delete_queue(&agent).await;
                schedule.diary.note("agent's queue deleted");
            }
            10..12 => {
                let _ = broker.delete_queue(&scheduler).await;
                schedule.diary.note("schedulers' queue deleted");
            }
            12 => {
                broker.kill();
                schedule.diary.note("broker killed");
                schedule.pause(0, 1500).await;
                broker.restart().await.unwrap();
            }
            _ => {
                broker.freeze().unwrap();
                schedule.diary.note("broker stopped for a while");
                schedule.pause(300, 3000).await;
                broker.thaw().unwrap();
            }
        }
    }
}

/// Where the region keeps its state.
pub(crate) enum TestedDatabase {
    Sqlite(PathBuf),
    MariaDb(MariaDb),
    Postgres(Postgres),
}

/// The database dies, ends, stands still; a file is locked by another program.
pub(crate) async fn database(mut schedule: FaultSchedule<'_>, tested: &mut TestedDatabase) {
    while !schedule.end.has_passed() {
        schedule.pause(5000, 18_000).await;
        match tested {
            TestedDatabase::Sqlite(file) => {
                let seconds = schedule.millis(200, 3000);
                lock(file, seconds).await;
                schedule.diary.note("database locked for a while");
            }
            TestedDatabase::MariaDb(server) => break_server(&mut schedule, server).await,
            TestedDatabase::Postgres(server) => break_server(&mut schedule, server).await,
        }
    }
}

async fn break_server<K: ServerKind>(
    schedule: &mut FaultSchedule<'_>,
    server: &mut PrivateServer<K>,
) {
    match schedule.dice.below(3) {
        0 => {
            server.kill();
            schedule.diary.note("database killed");
            schedule.pause(0, 1000).await;
            server.restart().await.unwrap();
        }
        1 => {
            schedule.diary.note("database restarted");
            server.restart().await.unwrap();
        }
        _ => {
            server.freeze().unwrap();
            schedule.diary.note("database stopped for a while");
            schedule.pause(300, 3000).await;
            server.thaw().unwrap();
        }
    }
}

/// What a backup does that is written badly: the file is locked for writing.
async fn lock(file: &Path, during: Duration) {
    const PROGRAM: &str = "import sqlite3, sys, time\n\
        c = sqlite3.connect(sys.argv[1], timeout=60, isolation_level=None)\n\
        c.execute('BEGIN EXCLUSIVE')\ntime.sleep(float(sys.argv[2]))\nc.execute('ROLLBACK')";
    let log = file.with_extension("lock.log");
    let process = ebbtide_harness::ProcessCommand::new("lock", "/usr/bin/python3")
        .args(["-c", PROGRAM])
        .arg(file)
        .arg(during.as_secs_f64().to_string())
        .spawn(&log)
        .unwrap();
    let status = process.wait_exit(Duration::from_secs(120)).await.unwrap();
    assert!(status.success(), "{}", process.log_tail());
}
