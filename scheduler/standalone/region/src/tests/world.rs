//! A region in a simulated world: database, broker, hosts with real agent cores, and a clock that
//! only the test moves.

use super::checks;
use super::database::Database;
use super::host::TestHost;
use crate::{
    CountingIds, Effects, Ids, OutboxConfirmation, Region, RegionConfig, RegionError, RegionInput,
    Report, Tick,
};
use ebbtide_engine::{Engine, EngineConfig};
use ebbtide_model::message::Message;
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_model::{CloudEvent, Flavor, FlavorId, Seconds, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use uuid::Uuid;

/// Identifiers of the region count from here.
pub(super) const IDS: u128 = 0x1d00_0000_0000_4000_8000_0000_0000_0000;

/// Why an input had no effect.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum InputFailure {
    ByRegion(RegionError),
    /// The database could not be written.
    NotWritten,
}

pub(super) struct SimulatedRegion {
    pub(super) now: Timestamp,
    pub(super) config: RegionConfig,
    engine: Arc<Engine>,
    pub(super) region: Region,
    pub(super) database: Database,
    pub(super) hosts: BTreeMap<String, TestHost>,
    pub(super) broker_up: bool,
    /// The publisher's copy of the outbox, by host.
    pub(super) outbox: BTreeMap<String, VecDeque<OutboxMessage>>,
    /// The broker's queue for the scheduler.
    pub(super) reports: VecDeque<Message>,
    /// After how many successful commits the next one fails.
    pub(super) fail_commit_after: Option<u32>,
    ids: CountingIds,
    /// All events that were published to watchers.
    pub(super) events: Vec<CloudEvent>,
    /// Log of the test, shown when it fails.
    pub(super) story: VecDeque<String>,
    /// The changes of the newest input.
    pub(super) last_changes: Vec<Change>,
    next_heartbeat: Timestamp,
}

/// 2026-02-02, an arbitrary fixed start time.
const BEGIN: i64 = 1_770_000_000_000;
pub(super) const HEARTBEAT: Seconds = Seconds(10);

pub(super) fn engine() -> Arc<Engine> {
    Arc::new(Engine::new(EngineConfig::default()).expect("the defaults are right"))
}

/// A flavor with VCPUs and 1000 MiB for each.
pub(super) fn normal(vcpus: u32) -> Flavor {
    Flavor {
        id: FlavorId(Uuid::from_u128(u128::from(vcpus))),
        name: format!("n{vcpus}"),
        vcpus,
        ram_mb: 1000 * vcpus,
        disk_gb: 0,
        extra_specs: BTreeMap::new(),
    }
}

/// A preemptible flavor of the same size.
pub(super) fn spot(vcpus: u32) -> Flavor {
    with(&normal(vcpus), &[("ebbtide:preemptible", "true")])
}

pub(super) fn with(flavor: &Flavor, specs: &[(&str, &str)]) -> Flavor {
    let mut flavor = flavor.clone();
    for (key, value) in specs {
        flavor
            .extra_specs
            .insert((*key).to_owned(), (*value).to_owned());
    }
    let words = format!("{} {:?}", flavor.name, flavor.extra_specs);
    flavor.id = FlavorId(Uuid::new_v5(&Uuid::nil(), words.as_bytes()));
    flavor.name = format!("f-{}", flavor.id);
    flavor
}

impl SimulatedRegion {
    pub(super) fn new(hosts: &[(&str, u64)]) -> Self {
        Self::with_config(hosts, RegionConfig::default())
    }

    pub(super) fn with_config(hosts: &[(&str, u64)], config: RegionConfig) -> Self {
        let now = Timestamp::from_millis(BEGIN);
        let engine = engine();
        let database = Database::default();
        let region = Region::restore(config.clone(), engine.clone(), database.snapshot(), now)
            .expect("an empty region");
        let hosts = hosts
            .iter()
            .map(|(name, vcpus)| ((*name).to_owned(), TestHost::new(name, *vcpus, now)))
            .collect();
        let mut world = Self {
            now,
            config,
            engine,
            region,
            database,
            hosts,
            broker_up: true,
            outbox: BTreeMap::new(),
            reports: VecDeque::new(),
            fail_commit_after: None,
            ids: CountingIds::after(IDS),
            events: Vec::new(),
            story: VecDeque::new(),
            last_changes: Vec::new(),
            next_heartbeat: now,
        };
        let names: Vec<String> = world.hosts.keys().cloned().collect();
        for name in names {
            // One after the other, so that the order of their creation is that of their names.
            world.now = Timestamp::from_millis(world.now.as_millis() + 1);
            world.heartbeat(&name);
            world.flush();
        }
        world
    }

    // ---- the scheduler ----

    pub(super) fn log(&mut self, what: impl FnOnce() -> String) {
        if self.story.len() >= 1500 {
            self.story.pop_front();
        }
        let at = self.now.as_millis() - BEGIN;
        self.story
            .push_back(format!("{:>8}.{:03} {}", at / 1000, at % 1000, what()));
    }

    /// Handles one input: writes its changes, applies its effects, and checks every invariant.
    pub(super) fn input<I: RegionInput>(&mut self, input: I) -> Result<I::Reply, InputFailure> {
        self.log(|| format!("<- {}", checks::short(&input)));
        let outcome = self.region.handle(self.now, &mut self.ids, input);
        let (
            reply,
            Effects {
                changes, events, ..
            },
        ) = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                checks::nothing_was_changed(self);
                return Err(InputFailure::ByRegion(error));
            }
        };
        if !changes.is_empty() && !self.commits() {
            self.log(|| "   the commit fails".to_owned());
            self.restart_scheduler();
            return Err(InputFailure::NotWritten);
        }
        for change in &changes {
            if let Some(words) = checks::short_change(change) {
                self.log(|| format!("   {words}"));
            }
        }
        self.database.apply(&changes);
        self.follow_outbox(&changes);
        self.events.extend(events);
        self.last_changes = changes;
        checks::after_input(self);
        Ok(reply)
    }

    fn commits(&mut self) -> bool {
        match &mut self.fail_commit_after {
            None => true,
            Some(0) => {
                self.fail_commit_after = None;
                false
            }
            Some(n) => {
                *n -= 1;
                true
            }
        }
    }

    fn follow_outbox(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Enqueue(message) => {
                    self.outbox
                        .entry(message.host.clone())
                        .or_default()
                        .push_back(message.clone());
                }
                Change::Dequeue(id) => {
                    self.outbox
                        .values_mut()
                        .for_each(|queue| queue.retain(|m| m.id != *id));
                }
                _ => {}
            }
        }
    }

    /// Restarts the scheduler: it then knows only what is in the database.
    pub(super) fn restart_scheduler(&mut self) {
        self.log(|| "   the scheduler restarts".to_owned());
        let snapshot = self.database.snapshot();
        self.outbox.clear();
        // What a restored outbox has is not sent.
        let unsent = snapshot
            .outbox
            .iter()
            .filter(|_| snapshot.restored.is_none());
        for message in unsent {
            self.outbox
                .entry(message.host.clone())
                .or_default()
                .push_back(message.clone());
        }
        self.region = Region::restore(self.config.clone(), self.engine.clone(), snapshot, self.now)
            .expect("what was written can be read");
        checks::region_is_sound(self);
    }

    /// Sends the next message for a host and handles the broker's confirmation.
    pub(super) fn send_one(&mut self, host: &str) -> bool {
        if !self.broker_up {
            return false;
        }
        let Some(message) = self.outbox.get_mut(host).and_then(VecDeque::pop_front) else {
            return false;
        };
        let parsed = Message::from_bytes(&message.body).expect("what we send can be read");
        self.log(|| format!("-> {host}: {}", checks::short_body(&parsed.body)));
        if let Some(there) = self.hosts.get_mut(host) {
            there.queue.push_back(parsed);
        }
        let evacuation_id = message.evacuation_id;
        // If the confirmation is not written, the message is sent once more.
        let _ = self.input(OutboxConfirmation {
            id: message.id,
            evacuation_id,
        });
        true
    }

    /// Reads the next report. A report whose effect could not be written comes again.
    pub(super) fn read_one(&mut self) -> bool {
        if !self.broker_up {
            return false;
        }
        let Some(message) = self.reports.pop_front() else {
            return false;
        };
        if self.input(Report(message.clone())) == Err(InputFailure::NotWritten) {
            self.reports.push_front(message);
        }
        true
    }

    pub(super) fn tick(&mut self) {
        let _ = self.input(Tick);
    }

    // ---- hosts ----

    pub(super) fn host(&mut self, name: &str) -> &mut TestHost {
        self.hosts.get_mut(name).expect("a host of this world")
    }

    pub(super) fn heartbeat(&mut self, host: &str) {
        let now = self.now;
        if self.broker_up
            && let Some(beat) = self.host(host).heartbeat(now)
        {
            self.reports.push_back(beat);
        }
    }

    /// The broker accepts the next report of a host.
    pub(super) fn confirm_one(&mut self, host: &str) -> bool {
        let now = self.now;
        if !self.broker_up {
            return false;
        }
        let Some(message) = self.host(host).confirm(now) else {
            return false;
        };
        // A report that cannot be serialized and parsed again would be lost.
        let bytes = message.to_bytes().expect("a report can be written");
        self.reports
            .push_back(Message::from_bytes(&bytes).expect("and read"));
        true
    }

    /// Processes everything that needs no time, until nothing is left.
    pub(super) fn flush(&mut self) {
        for _ in 0..10_000 {
            let mut moved = false;
            let names: Vec<String> = self.hosts.keys().cloned().collect();
            for name in &names {
                moved |= self.send_one(name);
                let now = self.now;
                let host = self.host(name);
                moved |= host.deliver(now);
                host.tick(now);
                moved |= host.complete_all(now);
                moved |= self.confirm_one(name);
            }
            while self.read_one() {
                moved = true;
            }
            checks::hosts_are_sound(self);
            if !moved {
                return;
            }
        }
        panic!("the world does not come to rest");
    }

    /// Advances time second by second and processes everything that is due.
    pub(super) fn run(&mut self, seconds: u32) {
        for _ in 0..seconds {
            self.now = self.now.plus(Seconds(1));
            if self.now >= self.next_heartbeat {
                self.next_heartbeat = self.now.plus(HEARTBEAT);
                let names: Vec<String> = self.hosts.keys().cloned().collect();
                let now = self.now;
                for name in names {
                    self.host(&name).observe(now);
                    self.heartbeat(&name);
                }
            }
            self.flush();
            self.tick();
            self.flush();
        }
    }

    pub(super) fn next_uuid(&mut self) -> Uuid {
        self.ids.next()
    }
}
