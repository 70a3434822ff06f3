//! What a cloud could sell beside its servers: how many servers of each flavor would fit.

use crate::Tasks;
use crate::decisions::Decisions;
use crate::facts::Facts;
use ebbtide_engine::HostSummary;
use ebbtide_model::{HostHealth, IdleHour, Timestamp};
use ebbtide_nova::model::Flavor;
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use std::collections::BTreeMap;
use std::time::Duration;

/// Interval of the samples.
const EVERY: Duration = Duration::from_secs(60);
/// Pause before a sample is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// Most flavors that are looked at.
const MOST_FLAVORS: usize = 100;
const HOUR_MS: i64 = 3_600_000;
const MIB_PER_GIB: i64 = 1024;

/// What a server of a flavor takes, by class. Extra specs that change amounts are not read.
fn amounts(flavor: &Flavor) -> BTreeMap<&'static str, i64> {
    let swap = flavor.swap.max(0);
    // Nova rounds swap up to whole GiB (`nova/scheduler/utils.py`, `resources_for_limits`).
    let disk = flavor.root_gb + flavor.ephemeral_gb + (swap + MIB_PER_GIB - 1) / MIB_PER_GIB;
    let all = [
        ("VCPU", flavor.vcpus),
        ("MEMORY_MB", flavor.memory_mb),
        ("DISK_GB", disk),
    ];
    all.into_iter().filter(|(_, amount)| *amount > 0).collect()
}

/// How many servers with these amounts fit beside all others, on all hosts that are up. Traits,
/// aggregates and filters are not looked at, so it is an upper bound.
fn fitting(hosts: &[HostSummary], amounts: &BTreeMap<&'static str, i64>) -> u64 {
    let up = hosts.iter().filter(|host| host.health == HostHealth::Up);
    up.map(|host| {
        let free = |class: &str| {
            let mut classes = host.usage.classes.iter();
            let found = classes.find(|usage| usage.class.as_str() == class);
            found.map_or(0, |usage| usage.free_full.max(0))
        };
        let fits = amounts.iter().map(|(class, amount)| free(class) / amount);
        fits.min().unwrap_or(0).unsigned_abs()
    })
    .sum()
}

/// The hour of a time.
fn hour_of(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.as_millis().div_euclid(HOUR_MS) * HOUR_MS)
}

/// The hours that are being filled, and what fitted last.
#[derive(Default)]
struct Samples {
    hours: BTreeMap<String, IdleHour>,
    last: BTreeMap<String, u64>,
}

impl Samples {
    /// Goes on with hours that an earlier process began.
    fn resume(&mut self, hours: Vec<IdleHour>) {
        for hour in hours {
            self.hours.insert(hour.flavor.clone(), hour);
        }
    }

    fn add(&mut self, at: Timestamp, flavor: &str, fit: u64) {
        let hour = hour_of(at);
        let current = self
            .hours
            .entry(flavor.to_owned())
            .or_insert_with(|| IdleHour::new(hour, flavor));
        if current.hour != hour {
            *current = IdleHour::new(hour, flavor);
        }
        current.add(fit, self.last.insert(flavor.to_owned(), fit));
    }
}

/// Looks at the cloud once a minute, and once when the shadow ends.
pub(super) fn start(facts: &Facts, decisions: &Decisions, tasks: &Tasks) {
    let (facts, decisions, stop) = (facts.clone(), decisions.clone(), tasks.stop().clone());
    tasks.spawn("idle-capacity", async move {
        let mut samples = Samples::default();
        let mut resumed = false;
        loop {
            let goes_on = !stop.is_cancelled();
            let sampled = sample(&facts, &decisions, &mut samples, &mut resumed).await;
            let wait = match &sampled {
                Ok(()) => EVERY,
                Err(_) => RETRY,
            };
            if let Err(error) = sampled {
                tracing::warn!("idle capacity is not recorded: {error}");
            }
            if !goes_on {
                return;
            }
            // The end of the pause is the last look, too.
            pause(&stop, wait).await;
        }
    });
}

async fn sample(
    facts: &Facts,
    decisions: &Decisions,
    samples: &mut Samples,
    resumed: &mut bool,
) -> Result<(), String> {
    let words = |error: &dyn std::fmt::Display| error.to_string();
    facts.database.freshen().await;
    let flavors = facts.database.nova().flavors_offered().await;
    let flavors = flavors.map_err(|error| words(&error))?;
    let now = clock::now();
    let hosts = facts.read(|cloud| cloud.host_summaries(now.as_millis().saturating_mul(1000)));
    let Some(store) = decisions.store() else {
        return Err("the database is not open yet".to_owned());
    };
    if !*resumed {
        let hour = hour_of(now);
        let next = Timestamp::from_millis(hour.as_millis() + HOUR_MS);
        let begun = store.idle_hours(hour, next).await;
        samples.resume(begun.map_err(|error| words(&error))?);
        *resumed = true;
    }
    for flavor in flavors.iter().take(MOST_FLAVORS) {
        let amounts = amounts(flavor);
        if !amounts.is_empty() {
            samples.add(now, &flavor.name, fitting(&hosts, &amounts));
        }
    }
    let hour = hour_of(now);
    let current = samples.hours.values().filter(|one| one.hour == hour);
    let current: Vec<IdleHour> = current.cloned().collect();
    let written = store.put_idle_hours(&current).await;
    written.map_err(|error| words(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flavor_takes_what_placement_is_asked_for() {
        let flavor = Flavor {
            vcpus: 2,
            memory_mb: 2048,
            root_gb: 10,
            ephemeral_gb: 5,
            swap: 1025,
            ..Flavor::default()
        };
        let expected = [("VCPU", 2), ("MEMORY_MB", 2048), ("DISK_GB", 17)];
        assert_eq!(amounts(&flavor), expected.into_iter().collect());
        let diskless = Flavor {
            vcpus: 1,
            ..Flavor::default()
        };
        assert_eq!(amounts(&diskless), [("VCPU", 1)].into_iter().collect());
    }

    #[test]
    fn an_hour_that_was_begun_goes_on_and_the_next_one_is_new() {
        let at = Timestamp::from_millis;
        let mut samples = Samples::default();
        let mut begun = IdleHour::new(at(0), "small");
        begun.add(9, None);
        samples.resume(vec![begun]);
        samples.add(at(60_000), "small", 5);
        samples.add(at(HOUR_MS - 1), "small", 3);
        let first = samples.hours["small"].clone();
        assert_eq!((first.samples, first.least, first.most), (3, 3, 9));
        // The end of the earlier process is no fall: what happened meanwhile is not known.
        assert_eq!(first.falls, 2);
        samples.add(at(HOUR_MS), "small", 1);
        let second = &samples.hours["small"];
        assert_eq!((second.hour, second.samples), (at(HOUR_MS), 1));
        assert_eq!(second.falls, 2, "from the last sample of the hour before");
    }
}
