//! What the hypervisor says that there is: what it has, and all its domains, in one call. Pure.

use super::names;
use ebbtide_model::message::HostedState;
use ebbtide_model::{ResourceClass, Resources, ServerId};
use std::collections::{BTreeMap, BTreeSet};

/// The commands whose answers [`Snapshot::read`] understands. `--nowait`: a domain that is being
/// saved must not hold up a look.
pub(super) const COMMANDS: &str = "nodeinfo; list --all --with-managed-save --name; domstats --state --vcpu --balloon --nowait --raw";

/// libvirt's `virDomainState`, as far as it matters.
mod state {
    pub(super) const PAUSED: u32 = 3;
    pub(super) const SHUTOFF: u32 = 5;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Domain {
    state: u32,
    /// Its memory is on disk.
    pub saved: bool,
    vcpus: u64,
    memory_kib: u64,
}

impl Domain {
    /// What it is doing, in our words. Whatever has a process holds its room: paused, crashed but
    /// kept, shutting down.
    #[must_use]
    pub fn state(&self) -> HostedState {
        match (self.state, self.saved) {
            (state::SHUTOFF, true) => HostedState::Hibernated,
            (state::SHUTOFF, false) => HostedState::Stopped,
            _ => HostedState::Running,
        }
    }

    pub(super) fn is_paused(&self) -> bool {
        self.state == state::PAUSED
    }

    /// Processors and memory that this machine keeps from others.
    #[must_use]
    pub fn holds(&self) -> Resources {
        let mut holds = Resources::new();
        if self.state() == HostedState::Running {
            // Beyond the model's range there are no such machines.
            let _ = holds.set(ResourceClass::vcpu(), self.vcpus);
            let _ = holds.set(ResourceClass::memory_mb(), self.memory_kib.div_ceil(1024));
        }
        holds
    }
}

/// Everything, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Processors of the host.
    pub cpus: u64,
    /// Memory of the host.
    pub memory_mib: u64,
    pub servers: BTreeMap<ServerId, Domain>,
    /// What domains that are not ours hold.
    pub foreign: Vec<Resources>,
}

impl Snapshot {
    /// Understands what virsh printed.
    ///
    /// # Errors
    /// What is missing in it.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut snapshot = Self::default();
        let mut saved = BTreeSet::new();
        let mut domains: BTreeMap<String, Domain> = BTreeMap::new();
        let mut current: Option<String> = None;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(name) = line
                .strip_prefix("Domain: '")
                .and_then(|l| l.strip_suffix('\''))
            {
                domains.insert(name.to_owned(), Domain::default());
                current = Some(name.to_owned());
            } else if let Some(domain) = current.as_ref().and_then(|name| domains.get_mut(name)) {
                domain.take(line)?;
            } else if let Some((key, value)) = line.split_once(':') {
                snapshot.take(key.trim(), value.trim())?;
            } else {
                saved.insert(line.to_owned());
            }
        }
        if snapshot.cpus == 0 || snapshot.memory_mib == 0 {
            return Err("it did not say how many processors and how much memory it has".to_owned());
        }
        for (name, mut domain) in domains {
            domain.saved = saved.contains(&name);
            match names::server_of(&name) {
                Some(server_id) => {
                    snapshot.servers.insert(server_id, domain);
                }
                None => snapshot.foreign.push(domain.holds()),
            }
        }
        Ok(snapshot)
    }

    fn take(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "CPU(s)" => self.cpus = number(value)?,
            "Memory size" => {
                self.memory_mib = number(value.trim_end_matches("KiB").trim())? / 1024;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Domain {
    fn take(&mut self, line: &str) -> Result<(), String> {
        match line.split_once('=') {
            Some(("state.state", value)) => {
                self.state = u32::try_from(number(value)?).map_err(|_| unreadable(value))?;
            }
            Some(("vcpu.current", value)) => self.vcpus = number(value)?,
            Some(("balloon.maximum", value)) => self.memory_kib = number(value)?,
            _ => {}
        }
        Ok(())
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| unreadable(text))
}

fn unreadable(text: &str) -> String {
    format!("it said {text:?} where a number was expected")
}
