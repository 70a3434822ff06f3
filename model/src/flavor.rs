//! Flavors, and what their extra specs mean to Ebbtide.
//!
//! Preemptible is a property of the flavor (`ebbtide:preemptible=true`). A server keeps a copy of
//! its flavor as it was at creation, so later changes of the flavor do not affect a running server.

use crate::resource::MAX_AMOUNT;
use crate::{FlavorId, ModelError, Money, ResourceClass, Resources, Seconds, Trait, names};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

/// The extra spec that makes a flavor preemptible: `true` or `false` (default).
pub const PREEMPTIBLE: &str = "ebbtide:preemptible";
/// What happens to a victim: `terminate` (default), `stop` or `hibernate`.
pub const INTERRUPTION: &str = "ebbtide:interruption";
/// Seconds between notice and end, 0 to [`MAX_GRACE`]; default is the region's.
pub const GRACE_SECONDS: &str = "ebbtide:grace_seconds";
/// Seconds after launch in which the instance is never chosen as a victim; default is the region's.
pub const PROTECTED_SECONDS: &str = "ebbtide:protected_seconds";
/// Price of one instance-hour, a decimal number; default 0.
pub const PRICE_PER_HOUR: &str = "ebbtide:price_per_hour";
/// Priority class 0 (goes first, default) to [`MAX_PRIORITY`].
pub const PRIORITY: &str = "ebbtide:priority";
/// Extra spec: the most that the owner of a server pays for an hour, where the request names no
/// maximum price.
pub const MAX_PRICE: &str = "ebbtide:max_price";
/// Seconds after launch at which a preemptible instance ends, even if no other server needs its
/// capacity; default never. Its notice comes a grace period before.
pub const MAX_LIFETIME_SECONDS: &str = "ebbtide:max_lifetime_seconds";
/// Seconds that the work of such an instance usually takes, for the weigher `interruption_risk`;
/// default: the scheduler's horizon.
pub const EXPECTED_SECONDS: &str = "ebbtide:expected_seconds";

/// Longest maximum lifetime: a year.
pub const MAX_LIFETIME: Seconds = Seconds(365 * 24 * 3600);
/// Shortest maximum lifetime: a minute.
pub const MIN_LIFETIME: Seconds = Seconds(60);
/// Default of the default grace period, in seconds: of `region.default_grace_seconds`, and as text
/// of `[ebbtide] default_grace` in nova.conf.
pub const DEFAULT_GRACE_TEXT: &str = "30";
/// The grace period of a flavor that says nothing, unless the operator's configuration does.
pub const DEFAULT_GRACE: Seconds = match u32::from_str_radix(DEFAULT_GRACE_TEXT, 10) {
    Ok(seconds) => Seconds(seconds),
    Err(_) => panic!("DEFAULT_GRACE_TEXT is not a number of seconds"),
};
/// Longest grace period. The notice stays unacknowledged on the broker meanwhile, and RabbitMQ
/// closes channels on deliveries older than 30 minutes (`consumer_timeout`); half of that leaves
/// room for the interruption itself.
pub const MAX_GRACE: Seconds = Seconds(900);
/// Longest protection: a week. Longer is not preemptible but normal.
pub const MAX_PROTECTED: Seconds = Seconds(7 * 24 * 3600);
/// Highest priority class.
pub const MAX_PRIORITY: u8 = 3;

/// Whether servers are preemptible whose flavor gives [`PREEMPTIBLE`] this value.
#[must_use]
pub fn is_preemptible(value: Option<&str>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

/// What happens to a victim when its grace period is over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InterruptionBehaviour {
    /// The instance and its local disk are gone.
    #[default]
    Terminate,
    /// Shut down; the disk stays, CPU and memory are freed.
    Stop,
    /// Memory is written to disk; the instance can resume later.
    Hibernate,
    /// The running instance moves to another host with enough free capacity. If there is none, it
    /// ends as the agent's `evacuation.live_migrate_fallback` says.
    #[serde(rename = "live-migrate")]
    LiveMigrate,
}

crate::words!(InterruptionBehaviour);

impl InterruptionBehaviour {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Terminate => "terminate",
            Self::Stop => "stop",
            Self::Hibernate => "hibernate",
            Self::LiveMigrate => "live-migrate",
        }
    }
}

impl fmt::Display for InterruptionBehaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for InterruptionBehaviour {
    type Err = ModelError;

    fn from_str(word: &str) -> Result<Self, ModelError> {
        match word {
            "terminate" => Ok(Self::Terminate),
            "stop" => Ok(Self::Stop),
            "hibernate" => Ok(Self::Hibernate),
            "live-migrate" => Ok(Self::LiveMigrate),
            _ => Err(ModelError::Unknown {
                what: "interruption behaviour",
                value: names::shorten(word),
                allowed: "terminate, stop, hibernate, live-migrate",
            }),
        }
    }
}

/// A flavor as the operator defined it. Immutable: to change one, delete it and create another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flavor {
    /// Its identifier.
    pub id: FlavorId,
    /// Its name, unique in the region.
    pub name: String,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory, in MiB.
    pub ram_mb: u32,
    /// Root and ephemeral disk together, in GiB.
    pub disk_gb: u32,
    /// Everything else, as in Nova.
    #[serde(default)]
    pub extra_specs: BTreeMap<String, String>,
}

/// The extra specs of a flavor, parsed and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct FlavorProperties {
    /// What one instance takes, by resource class.
    pub resources: Resources,
    /// True if instances may be evacuated for a normal request.
    pub preemptible: bool,
    /// What happens to a victim.
    pub interruption: InterruptionBehaviour,
    /// Time from notice to end, if the flavor says so.
    pub grace: Option<Seconds>,
    /// Time after launch without risk, if the flavor says so.
    pub protected: Option<Seconds>,
    /// Time after launch at which an instance ends in any case.
    pub max_lifetime: Option<Seconds>,
    /// How long the work of an instance usually takes.
    pub expected: Option<Seconds>,
    /// Price of an instance-hour.
    pub price_per_hour: Money,
    /// The most that an owner pays for an hour who names no maximum price.
    pub max_price: Option<Money>,
    /// Priority class, 0 goes first.
    pub priority: u8,
    /// Traits that a host must have.
    pub required_traits: BTreeSet<Trait>,
    /// Traits that a host must not have.
    pub forbidden_traits: BTreeSet<Trait>,
    /// Requirements on the metadata of the host's aggregates: key to expression
    /// (`aggregate_instance_extra_specs:KEY`, as Nova's AggregateInstanceExtraSpecsFilter).
    pub aggregate_specs: BTreeMap<String, String>,
}

/// The scope of Ebbtide's own extra specs.
const SCOPE: &str = "ebbtide:";

/// The scope of extra specs that speak about aggregates (Nova,
/// `aggregate_instance_extra_specs.py`).
const AGGREGATE_SCOPE: &str = "aggregate_instance_extra_specs:";

impl Flavor {
    /// Reads the extra specs.
    ///
    /// `resources:CLASS=N` overrides or adds a class (0 removes it),
    /// `trait:NAME=required|forbidden`, and `hw:cpu_policy=dedicated` turns VCPU into PCPU, all as
    /// Nova does (`nova/scheduler/utils.py`).
    ///
    /// # Errors
    /// The first thing that cannot be understood, with its key. An unknown key in the scope
    /// `ebbtide:` is refused: a typing error there would silently make a normal instance of a
    /// preemptible one.
    pub fn properties(&self) -> Result<FlavorProperties, ModelError> {
        names::check_name("flavor", &self.name)?;
        let mut p = FlavorProperties::of(self.base_resources()?);
        for (key, value) in &self.extra_specs {
            let wrong = |problem| wrong_spec(key, value, problem);
            if let Some(class) = key.strip_prefix("resources:") {
                let class: ResourceClass = class
                    .parse()
                    .map_err(|e: ModelError| wrong(e.to_string()))?;
                let amount: u64 = value
                    .parse()
                    .map_err(|_| wrong(format!("use a whole number, 0 to {MAX_AMOUNT}")))?;
                p.resources
                    .set(class, amount)
                    .map_err(|e| wrong(e.to_string()))?;
            } else if let Some(name) = key.strip_prefix("trait:") {
                let name: Trait = name.parse().map_err(|e: ModelError| wrong(e.to_string()))?;
                match value.as_str() {
                    "required" => p.required_traits.insert(name),
                    "forbidden" => p.forbidden_traits.insert(name),
                    _ => return Err(wrong("use required or forbidden".to_owned())),
                };
            } else if let Some(name) = key.strip_prefix(AGGREGATE_SCOPE) {
                p.aggregate_specs.insert(name.to_owned(), value.clone());
            } else if key.starts_with(SCOPE) {
                p.read_own(key, value).map_err(wrong)?;
            }
        }
        if p.resources.is_empty() {
            return Err(ModelError::Range {
                what: format!("resources of flavor {}", self.name),
                value: "none".to_owned(),
                allowed: "at least one resource class above 0".to_owned(),
            });
        }
        p.check_max_price()?;
        p.check_lifetime()?;
        Ok(p)
    }

    fn base_resources(&self) -> Result<Resources, ModelError> {
        let dedicated = self
            .extra_specs
            .get("hw:cpu_policy")
            .is_some_and(|v| v == "dedicated");
        let cpu = if dedicated {
            ResourceClass::pcpu()
        } else {
            ResourceClass::vcpu()
        };
        let mut resources = Resources::new();
        resources.set(cpu, u64::from(self.vcpus))?;
        resources.set(ResourceClass::memory_mb(), u64::from(self.ram_mb))?;
        resources.set(ResourceClass::disk_gb(), u64::from(self.disk_gb))?;
        Ok(resources)
    }

    /// True if the flavor says `ebbtide:preemptible=true`.
    #[must_use]
    pub fn is_preemptible(&self) -> bool {
        is_preemptible(self.extra_specs.get(PREEMPTIBLE).map(String::as_str))
    }
}

fn wrong_spec(key: &str, value: &str, problem: String) -> ModelError {
    ModelError::ExtraSpec {
        key: names::shorten(key),
        value: names::shorten(value),
        problem,
    }
}

impl FlavorProperties {
    /// The properties of a flavor that says nothing but its resources.
    #[must_use]
    pub fn of(resources: Resources) -> Self {
        Self {
            resources,
            preemptible: false,
            interruption: InterruptionBehaviour::default(),
            grace: None,
            protected: None,
            max_lifetime: None,
            expected: None,
            price_per_hour: Money::default(),
            max_price: None,
            priority: 0,
            required_traits: BTreeSet::new(),
            forbidden_traits: BTreeSet::new(),
            aggregate_specs: BTreeMap::new(),
        }
    }

    /// Reads the extra specs of the scope `ebbtide:`, and no others.
    ///
    /// # Errors
    /// The first that cannot be understood, with its key.
    pub fn read_terms<'a>(
        &mut self,
        extra_specs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), ModelError> {
        for (key, value) in extra_specs {
            if key.starts_with(SCOPE) {
                self.read_own(key, value)
                    .map_err(|problem| wrong_spec(key, value, problem))?;
            }
        }
        self.check_max_price()?;
        self.check_lifetime()
    }

    /// The price of a normal flavor does not change.
    fn check_max_price(&self) -> Result<(), ModelError> {
        match self.max_price {
            Some(price) if !self.preemptible => Err(ModelError::ExtraSpec {
                key: MAX_PRICE.to_owned(),
                value: price.to_string(),
                problem: "only preemptible flavors have one".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// What an instance keeps after its evacuation, until its owner deletes it: the local disk of a
    /// preemptible one that is stopped or hibernated. A preemptor does not get this from such a
    /// victim.
    #[must_use]
    pub fn retained(&self) -> Resources {
        let keeps = match self.interruption {
            InterruptionBehaviour::Terminate | InterruptionBehaviour::LiveMigrate => false,
            InterruptionBehaviour::Stop | InterruptionBehaviour::Hibernate => self.preemptible,
        };
        if keeps {
            self.resources.only(&ResourceClass::disk_gb())
        } else {
            Resources::new()
        }
    }

    /// A maximum lifetime makes sense for preemptible instances only, and the notice has to fit in.
    fn check_lifetime(&self) -> Result<(), ModelError> {
        let Some(lifetime) = self.max_lifetime else {
            return Ok(());
        };
        let problem = match self.grace {
            _ if !self.preemptible => "only preemptible flavors have one",
            Some(grace) if grace >= lifetime => "the grace period of the flavor is not shorter",
            _ => return Ok(()),
        };
        Err(ModelError::ExtraSpec {
            key: MAX_LIFETIME_SECONDS.to_owned(),
            value: lifetime.0.to_string(),
            problem: problem.to_owned(),
        })
    }

    /// One key of our own scope. The error is the problem in words.
    fn read_own(&mut self, key: &str, value: &str) -> Result<(), String> {
        let seconds = |limit: Seconds| match value.parse::<u32>() {
            Ok(n) if n <= limit.0 => Ok(Some(Seconds(n))),
            _ => Err(format!("use whole seconds, 0 to {}", limit.0)),
        };
        match key {
            PREEMPTIBLE => {
                self.preemptible = is_preemptible(Some(value));
                if !self.preemptible && !value.eq_ignore_ascii_case("false") {
                    return Err("use true or false".to_owned());
                }
            }
            INTERRUPTION => {
                self.interruption = value.parse().map_err(|e: ModelError| e.to_string())?
            }
            GRACE_SECONDS => self.grace = seconds(MAX_GRACE)?,
            PROTECTED_SECONDS => self.protected = seconds(MAX_PROTECTED)?,
            MAX_LIFETIME_SECONDS => match value.parse::<u32>() {
                Ok(n) if (MIN_LIFETIME.0..=MAX_LIFETIME.0).contains(&n) => {
                    self.max_lifetime = Some(Seconds(n));
                }
                _ => {
                    return Err(format!(
                        "use whole seconds, {} to {}",
                        MIN_LIFETIME.0, MAX_LIFETIME.0
                    ));
                }
            },
            EXPECTED_SECONDS => match value.parse::<u32>() {
                Ok(n) if (1..=MAX_LIFETIME.0).contains(&n) => self.expected = Some(Seconds(n)),
                _ => return Err(format!("use whole seconds, 1 to {}", MAX_LIFETIME.0)),
            },
            PRICE_PER_HOUR => {
                self.price_per_hour = value.parse().map_err(|e: ModelError| e.to_string())?
            }
            MAX_PRICE => {
                self.max_price = Some(value.parse().map_err(|e: ModelError| e.to_string())?);
            }
            PRIORITY => match value.parse::<u8>() {
                Ok(n) if n <= MAX_PRIORITY => self.priority = n,
                _ => return Err(format!("use a class from 0 to {MAX_PRIORITY}")),
            },
            _ => {
                return Err(format!(
                    "unknown key; known are {PREEMPTIBLE}, {INTERRUPTION}, {GRACE_SECONDS}, {PROTECTED_SECONDS}, \
                     {MAX_LIFETIME_SECONDS}, {EXPECTED_SECONDS}, {PRICE_PER_HOUR}, {MAX_PRICE}, {PRIORITY}"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn flavor(specs: &[(&str, &str)]) -> Flavor {
        Flavor {
            id: FlavorId(Uuid::nil()),
            name: "p.medium".to_owned(),
            vcpus: 2,
            ram_mb: 4000,
            disk_gb: 40,
            extra_specs: specs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect(),
        }
    }

    #[test]
    fn every_extra_spec_of_ours_is_understood() {
        let p = flavor(&[
            (PREEMPTIBLE, "True"),
            (INTERRUPTION, "hibernate"),
            (GRACE_SECONDS, "600"),
            (PROTECTED_SECONDS, "300"),
            (PRICE_PER_HOUR, "0.031"),
            (MAX_PRICE, "0.02"),
            (PRIORITY, "2"),
            ("resources:CUSTOM_LICENCE", "1"),
            ("resources:DISK_GB", "0"),
            ("trait:HW_CPU_X86_AVX2", "required"),
            ("trait:CUSTOM_OLD", "forbidden"),
            ("aggregate_instance_extra_specs:ssd", "true"),
            ("quota:cpu_shares", "10"),
        ])
        .properties()
        .unwrap();
        assert!(p.preemptible);
        assert_eq!(p.interruption, InterruptionBehaviour::Hibernate);
        assert_eq!(
            (p.grace, p.protected),
            (Some(Seconds(600)), Some(Seconds(300)))
        );
        assert_eq!((p.price_per_hour.micros(), p.priority), (31_000, 2));
        assert_eq!(p.max_price.map(Money::micros), Some(20_000));
        assert_eq!(
            p.resources.to_string(),
            "CUSTOM_LICENCE=1, MEMORY_MB=4000, VCPU=2"
        );
        assert_eq!((p.required_traits.len(), p.forbidden_traits.len()), (1, 1));
        assert_eq!(p.aggregate_specs["ssd"], "true");
    }

    #[test]
    fn a_maximum_lifetime_is_for_preemptible_flavors_and_longer_than_their_grace() {
        let read = |specs: &[(&str, &str)]| flavor(specs).properties();
        let day = read(&[(PREEMPTIBLE, "true"), (MAX_LIFETIME_SECONDS, "86400")]);
        assert_eq!(day.unwrap().max_lifetime, Some(Seconds(86_400)));
        for (specs, problem) in [
            (vec![(MAX_LIFETIME_SECONDS, "86400")], "only preemptible"),
            (
                vec![
                    (PREEMPTIBLE, "true"),
                    (GRACE_SECONDS, "600"),
                    (MAX_LIFETIME_SECONDS, "600"),
                ],
                "not shorter",
            ),
            (
                vec![(PREEMPTIBLE, "true"), (MAX_LIFETIME_SECONDS, "59")],
                "60 to 31536000",
            ),
            (
                vec![(PREEMPTIBLE, "true"), (MAX_LIFETIME_SECONDS, "24h")],
                "whole seconds",
            ),
        ] {
            let error = read(&specs).unwrap_err().to_string();
            assert!(error.contains(problem), "{specs:?}: {error}");
        }
    }

    #[test]
    fn dedicated_cpus_are_another_class() {
        let p = flavor(&[("hw:cpu_policy", "dedicated")])
            .properties()
            .unwrap();
        assert_eq!(
            (p.resources.amount("PCPU"), p.resources.amount("VCPU")),
            (2, 0)
        );
    }

    #[test]
    fn only_a_preemptible_server_that_is_stopped_or_hibernated_keeps_its_disk() {
        for (preemptible, interruption, kept) in [
            ("true", "terminate", ""),
            ("true", "stop", "DISK_GB=40"),
            ("true", "hibernate", "DISK_GB=40"),
            ("false", "stop", ""),
        ] {
            let p = flavor(&[(PREEMPTIBLE, preemptible), (INTERRUPTION, interruption)])
                .properties()
                .unwrap();
            assert_eq!(
                p.retained().to_string(),
                kept,
                "{preemptible} {interruption}"
            );
            assert_eq!(p.retained().at_most(&p.resources), p.retained());
            let freed = p.resources.without(&p.retained());
            assert_eq!(
                freed.amount("DISK_GB"),
                if kept.is_empty() { 40 } else { 0 }
            );
            assert_eq!(freed.amount("VCPU"), 2);
        }
    }

    #[test]
    fn a_typing_error_in_our_scope_is_refused_and_named() {
        for (key, value) in [
            ("ebbtide:preemtible", "true"),
            (PREEMPTIBLE, "yes please"),
            (GRACE_SECONDS, "-1"),
            (GRACE_SECONDS, "901"),
            (PRIORITY, "4"),
            (PRICE_PER_HOUR, "NaN"),
            (INTERRUPTION, "explode"),
            ("resources:vcpu", "1"),
            ("resources:VCPU", "99999999999"),
            ("trait:X", "maybe"),
        ] {
            let error = flavor(&[(key, value)]).properties().unwrap_err();
            assert_eq!(error.code(), "EB-MODEL-005");
            assert!(error.to_string().contains(key), "{error}");
        }
    }

    #[test]
    fn a_flavor_of_nothing_is_refused() {
        let mut nothing = flavor(&[]);
        (nothing.vcpus, nothing.ram_mb, nothing.disk_gb) = (0, 0, 0);
        assert_eq!(nothing.properties().unwrap_err().code(), "EB-MODEL-003");
    }
}
