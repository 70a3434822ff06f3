//! A witness: reads the files of agents and hypervisors all the time, and asks no scheduler.

use ebbtide_integration_tests::Region;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(5);

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// On which hosts a server has run.
    pub(crate) ran: BTreeMap<String, BTreeSet<String>>,
    /// Hosts with more than they have.
    pub(crate) over: BTreeSet<String>,
    /// Servers on two hosts at the same time.
    pub(crate) twice: BTreeSet<String>,
    /// Evacuations that an agent has carried out: the victim by the evacuation.
    pub(crate) ended: BTreeMap<String, String>,
    /// How many changed files were read.
    pub(crate) reads: u64,
}

/// One hypervisor, as its file has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct HypervisorGuests {
    /// Since when each server runs, as the hypervisor writes it.
    pub(crate) servers: BTreeMap<String, String>,
    used: BTreeMap<String, u64>,
}

impl HypervisorGuests {
    /// Reads a hypervisor's file. One that is not there yet runs nothing.
    pub(crate) fn read(dir: &Path) -> Self {
        let Ok(text) = std::fs::read(dir.join("hypervisor.json")) else {
            return Self::default();
        };
        let state: Value = serde_json::from_slice(&text).unwrap();
        let mut running = Self::default();
        for (id, guest) in state["servers"].as_object().into_iter().flatten() {
            if guest["state"] != "running" {
                continue;
            }
            let since = guest["since"].to_string();
            running.servers.insert(id.clone(), since);
            for (class, amount) in guest["resources"].as_object().unwrap() {
                *running.used.entry(class.clone()).or_default() += amount.as_u64().unwrap();
            }
        }
        running
    }
}

struct Host {
    name: String,
    dir: PathBuf,
    /// Inode and time of the file that was read last.
    stamp: (u64, i64, i64),
    running: HypervisorGuests,
    journal: (u64, u64),
    half_a_line: Vec<u8>,
}

/// The witness at work.
pub(crate) struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Watch {
    /// Looks at these hosts, each of which has what agents of a region have.
    pub(crate) fn start(region: &Region, hosts: &[String]) -> Self {
        let hosts: Vec<(String, PathBuf)> = hosts
            .iter()
            .map(|host| (host.clone(), region.agent_dir(host)))
            .collect();
        let capacity = [("VCPU", 8), ("MEMORY_MB", 8000), ("DISK_GB", 80)];
        let capacity: BTreeMap<String, u64> =
            BTreeMap::from(capacity.map(|(class, has)| (class.to_owned(), has)));
        let over = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            let mut hosts: Vec<Host> = hosts.into_iter().map(Host::new).collect();
            let mut seen = Seen::default();
            loop {
                let last = until.load(Ordering::Relaxed);
                for at in 0..hosts.len() {
                    look(&mut hosts, at, &capacity, &mut seen);
                }
                if last {
                    return seen;
                }
                std::thread::sleep(PAUSE);
            }
        });
        Self { over, thread }
    }

    /// Looks once more and says what it has seen.
    pub(crate) fn end(self) -> Seen {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

impl Host {
    fn new((name, dir): (String, PathBuf)) -> Self {
        Self {
            name,
            dir,
            stamp: Default::default(),
            running: HypervisorGuests::default(),
            journal: (0, 0),
            half_a_line: Vec::new(),
        }
    }

    /// What was appended to the journal, or all of it if it was replaced.
    fn journal(&mut self, seen: &mut Seen) {
        let Ok(mut file) = std::fs::File::open(self.dir.join("journal")) else {
            return;
        };
        let about = file.metadata().unwrap();
        if about.ino() != self.journal.0 || about.len() < self.journal.1 {
            self.journal = (about.ino(), 0);
            self.half_a_line.clear();
        }
        if about.len() == self.journal.1 {
            return;
        }
        file.seek(SeekFrom::Start(self.journal.1)).unwrap();
        let mut new = Vec::new();
        self.journal.1 += file.read_to_end(&mut new).unwrap() as u64;
        self.half_a_line.extend(new);
        while let Some(end) = self.half_a_line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.half_a_line.drain(..=end).collect();
            note_record(&line, seen);
        }
    }
}

/// An evacuation that was carried out, if the line says so. A torn line says nothing.
fn note_record(line: &[u8], seen: &mut Seen) {
    let json = line.splitn(3, |byte| *byte == b' ').nth(2);
    let Some(Ok(record)) = json.map(serde_json::from_slice::<Value>) else {
        return;
    };
    let verdict = &record["phase"]["verdict"];
    let carried_out = verdict["verdict"] == "evacuated" && verdict["how"] != "already_gone";
    if let (true, Some(evacuation), Some(victim)) = (
        carried_out,
        record["evacuation_id"].as_str(),
        record["server_id"].as_str(),
    ) {
        seen.ended.insert(evacuation.to_owned(), victim.to_owned());
    }
}

fn look(hosts: &mut [Host], at: usize, capacity: &BTreeMap<String, u64>, seen: &mut Seen) {
    hosts[at].journal(seen);
    let Ok(about) = std::fs::metadata(hosts[at].dir.join("hypervisor.json")) else {
        return;
    };
    let stamp = (about.ino(), about.mtime(), about.mtime_nsec());
    if stamp == hosts[at].stamp {
        return;
    }
    let running = HypervisorGuests::read(&hosts[at].dir);
    let host = &mut hosts[at];
    host.stamp = stamp;
    host.running = running.clone();
    seen.reads += 1;
    for (class, used) in &running.used {
        if used > capacity.get(class).unwrap_or(&0) {
            let what = format!("{}: {used} {class}: {:?}", host.name, running.servers);
            seen.over.insert(what);
        }
    }
    let name = host.name.clone();
    for (id, since) in &running.servers {
        let hosts_of = seen.ran.entry(id.clone()).or_default();
        hosts_of.insert(name.clone());
        // Files are read one after another, so that a server that has moved meanwhile is in two of
        // them. Running there, then here, then there again since the same moment is what no move
        // looks like.
        for (other, elsewhere) in hosts.iter().enumerate() {
            if other == at || !elsewhere.running.servers.contains_key(id) {
                continue;
            }
            let there = HypervisorGuests::read(&elsewhere.dir)
                .servers
                .contains_key(id);
            let still = HypervisorGuests::read(&hosts[at].dir);
            if there && still.servers.get(id) == Some(since) {
                let both = format!("{id} on {name} and {}", elsewhere.name);
                seen.twice.insert(both);
            }
        }
    }
}
