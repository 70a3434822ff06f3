//! The cloud for a record that plugins are tried on: hosts, servers and rules in the words of the
//! standalone region's engine.

use super::Cloud;
use ebbtide_engine::{EngineConfig, WeigherConfig};
use ebbtide_model::flavor::PREEMPTIBLE;
use ebbtide_model::{Flavor, Host, HostHealth, Server, ServerStatus};
use ebbtide_nova::weighing::by_class;
use std::collections::BTreeSet;
use uuid::Uuid;

impl Cloud {
    /// Hosts that the engine takes, by name. A host that is forced down has never been heard, since
    /// the engine judges by the heartbeat alone. `now` in microseconds since 1970.
    #[must_use]
    pub fn recorded_hosts(&self, now: i64) -> Vec<Host> {
        let summaries = self.host_summaries(now).into_iter();
        let hosts = summaries.filter_map(|mut summary| {
            if summary.health == HostHealth::Down {
                summary.host.last_seen = None;
            }
            summary.host.check().ok().map(|()| summary.host)
        });
        hosts.collect()
    }

    /// Servers on hosts, by id, as the engine counts what they hold. One that its owner has stopped
    /// holds all its amounts in Placement, one that was evacuated and kept holds its disk. What
    /// servers hold that are leaving belongs to their newcomers: they count as normal ones, until
    /// Nova shows the newcomers on hosts.
    #[must_use]
    pub fn recorded_servers(&self) -> Vec<Server> {
        let replaced = self.replaced();
        let mut servers = self.servers();
        servers.retain_mut(|server| {
            let id = server.id.0;
            let Some(instance) = self.instances.get(&id) else {
                return false;
            };
            let leaving = self.leaving.contains(&id);
            if leaving {
                let specs = &mut server.flavor.extra_specs;
                specs.retain(|key, _| key != PREEMPTIBLE);
            }
            let released = !leaving && instance.terms.is_some() && instance.counted.is_none();
            server.status = match server.status {
                ServerStatus::Deleting => ServerStatus::Deleting,
                ServerStatus::Stopped | ServerStatus::Hibernated if released => {
                    ServerStatus::Stopped
                }
                _ => ServerStatus::Active,
            };
            server.host.is_some() && !replaced.contains(&id) && is_made_readable(&mut server.flavor)
        });
        servers
    }

    /// Victims whose newcomers Nova shows on hosts.
    fn replaced(&self) -> BTreeSet<Uuid> {
        let on_host = |id: &Uuid| {
            let instance = self.instances.get(id);
            instance.is_some_and(|instance| instance.record.host.is_some())
        };
        let open = self.open.rows.values();
        let taken =
            open.filter(|row| !row.newcomers.is_empty() && row.newcomers.iter().all(on_host));
        taken.flat_map(|row| row.victims.iter().copied()).collect()
    }

    /// The engine that comes nearest to what decides here: the cost module in use, and those of
    /// Nova's weighers that are in use and that the engine has, with their multipliers.
    #[must_use]
    pub fn recorded_engine(&self) -> EngineConfig {
        let options = self.options();
        let classes = options.weighers.iter();
        let weighers = classes.filter_map(|class| by_class(class, options));
        EngineConfig {
            weighers: weighers
                .map(|nova| WeigherConfig {
                    // A number that is not finite has no place in a configuration.
                    multiplier: nova.configured.filter(|multiplier| multiplier.is_finite()),
                    ..WeigherConfig::named(nova.weigher.name())
                })
                .collect(),
            ..self.settings().engine.clone()
        }
    }
}

/// Leaves out extra specs that the engine cannot read: Nova takes more than the engine does. False:
/// the amounts cannot be read either.
fn is_made_readable(flavor: &mut Flavor) -> bool {
    if flavor.properties().is_ok() {
        return true;
    }
    let preemptible = flavor.is_preemptible();
    let specs = &mut flavor.extra_specs;
    specs.retain(|key, _| preemptible && key == PREEMPTIBLE);
    flavor.properties().is_ok()
}
