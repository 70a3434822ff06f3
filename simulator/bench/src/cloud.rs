//! Clouds from a seed.
//!
//! Sizes are mixed and so is what they are short of: some take more memory for each virtual CPU
//! than the hosts have, some less. So hosts run out of different things, as real ones do, and the
//! cheapest victims are not simply the smallest.

use crate::progress::Progress;
use crate::seeded::SeededNumbers;
use ebbtide_engine::{EngineError, HostTable, Instance, InstancePhase};
use ebbtide_model::{
    Flavor, FlavorId, Host, Inventory, Money, PlacementRequest, ResourceClass, Resources, ServerId,
    Timestamp,
};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The moment at which every cloud is looked at first, in milliseconds since 1970.
pub const NOW_MILLIS: i64 = 1_770_000_000_000;
/// Instances are up to a day old: the age at which providers end preemptible instances anyway.
const OLDEST_MILLIS: u64 = 24 * 3_600_000;
/// Owners of the instances.
const PROJECTS: u64 = 50;
/// Amounts of VCPU, MEMORY_MB and DISK_GB, in this order.
pub type Amounts = [i64; 3];

/// What an instance takes.
#[derive(Debug, PartialEq, Eq)]
pub struct Size {
    /// The flavor's name.
    pub name: &'static str,
    /// Virtual CPUs.
    pub vcpus: u32,
    /// Memory in MiB.
    pub ram_mb: u32,
    /// Disk in GiB.
    pub disk_gb: u32,
}

const fn size(name: &'static str, vcpus: u32, ram_mb: u32, disk_gb: u32) -> Size {
    Size {
        name,
        vcpus,
        ram_mb,
        disk_gb,
    }
}

/// Sizes as the paper's testbed has them (tiny is its small), and further ones.
pub static TINY: Size = size("tiny", 1, 2000, 20);
/// See [`TINY`].
pub static SMALL: Size = size("small", 2, 4000, 40);
/// See [`TINY`].
pub static MEDIUM: Size = size("medium", 4, 8000, 80);
/// See [`TINY`].
pub static LARGE: Size = size("large", 8, 16_000, 160);
/// See [`TINY`].
pub static XLARGE: Size = size("xlarge", 16, 32_000, 320);
/// Short of CPUs.
pub static COMPUTE: Size = size("compute", 4, 4000, 40);
/// Short of memory.
pub static MEMORY: Size = size("memory", 2, 16_000, 40);

/// What preemptible instances are, and how often.
static PREEMPTIBLE_MIX: [(&Size, u64); 5] = [
    (&TINY, 5),
    (&SMALL, 6),
    (&MEDIUM, 4),
    (&COMPUTE, 3),
    (&MEMORY, 2),
];
/// What normal instances are, and how often.
static NORMAL_MIX: [(&Size, u64); 5] = [
    (&TINY, 2),
    (&SMALL, 4),
    (&MEDIUM, 4),
    (&LARGE, 2),
    (&MEMORY, 1),
];
/// What normal requests ask for, and how often.
static REQUEST_MIX: [(&Size, u64); 6] = [
    (&SMALL, 5),
    (&MEDIUM, 5),
    (&COMPUTE, 3),
    (&MEMORY, 3),
    (&LARGE, 3),
    (&XLARGE, 1),
];
/// Capacity of a host for each preemptible instance that it holds, in halves of a virtual CPU:
/// preemptible ones take about seven tenths of it, normal ones the rest.
const HALF_VCPUS_EACH: i64 = 7;
const RAM_MB_EACH: i64 = 8000;
const DISK_GB_EACH: i64 = 64;

impl Size {
    /// As the columns have it.
    #[must_use]
    pub fn amounts(&self) -> Amounts {
        [self.vcpus, self.ram_mb, self.disk_gb].map(i64::from)
    }

    /// As an instance has it.
    ///
    /// # Errors
    /// Never: sizes are below the limits of the model.
    pub fn resources(&self) -> Result<Resources, EngineError> {
        Ok(self.flavor().properties()?.resources)
    }

    /// The flavor of normal instances of this size.
    #[must_use]
    pub fn flavor(&self) -> Flavor {
        Flavor {
            id: FlavorId(Uuid::from_u128(
                u128::from(self.vcpus) << 64 | u128::from(self.ram_mb),
            )),
            name: self.name.to_owned(),
            vcpus: self.vcpus,
            ram_mb: self.ram_mb,
            disk_gb: self.disk_gb,
            extra_specs: BTreeMap::new(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct BenchInstance {
    /// Its identifier; the lower half is host × 2^24 + position.
    pub id: u128,
    /// What it takes.
    pub size: &'static Size,
    /// Whether it may be evacuated.
    pub preemptible: bool,
    /// When it was launched, in milliseconds since 1970.
    pub launched_millis: i64,
    /// The number of its owner.
    pub project: u64,
}

#[derive(Debug)]
pub struct HostPlan {
    /// What it has.
    pub capacity: Amounts,
    /// Who is on it: the preemptible ones first.
    pub guests: Vec<BenchInstance>,
    /// What they take together.
    taken: Amounts,
}

/// How full hosts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fill {
    /// So many preemptible instances on each host, and normal ones until not even the smallest size
    /// fits any more: every further normal request must preempt. The seed determines the total
    /// number of instances.
    Saturated {
        /// Preemptible instances on each host.
        preemptibles: u32,
    },
    /// 56 VCPUs, and up to twelve instances of both kinds: between empty and nearly full, with room
    /// for every request.
    Partly,
    /// No instances. Each host has capacity for exactly so many of [`SMALL`].
    Empty { slots: u32 },
    /// So many instances on all hosts together, as evenly as can be, every second one preemptible.
    Holding { instances: u32 },
    /// As many preemptible ones of [`SMALL`] as there is room for.
    Uniform { slots: u32 },
}

#[derive(Debug, Clone, Copy)]
pub struct CloudPlan {
    pub hosts: u32,
    /// How full.
    pub fill: Fill,
    /// Another seed, another cloud.
    pub seed: u64,
}

impl CloudPlan {
    /// One of its hosts, always the same.
    #[must_use]
    pub fn host(&self, number: u32) -> HostPlan {
        let mut seeded = SeededNumbers::new(self.seed, u64::from(number));
        let mut plan = HostPlan {
            capacity: capacity_for(self.fill),
            guests: Vec::new(),
            taken: [0; 3],
        };
        match self.fill {
            Fill::Saturated { preemptibles } => {
                for placed in 0..preemptibles {
                    let drawn = *seeded.pick(&PREEMPTIBLE_MIX).unwrap_or(&&TINY);
                    // Leave enough capacity for the remaining instances, each of the smallest size.
                    let later = i64::from(preemptibles - placed - 1);
                    let size = if plan.fits(drawn, later) {
                        drawn
                    } else {
                        &TINY
                    };
                    plan.put(number, size, true, &mut seeded);
                }
                while plan.fits(&TINY, 0) {
                    let drawn = *seeded.pick(&NORMAL_MIX).unwrap_or(&&TINY);
                    let size = if plan.fits(drawn, 0) { drawn } else { &TINY };
                    plan.put(number, size, false, &mut seeded);
                }
            }
            Fill::Partly => {
                for _ in 0..seeded.below(13) {
                    let drawn = *seeded.pick(&NORMAL_MIX).unwrap_or(&&TINY);
                    if plan.fits(drawn, 0) {
                        let preemptible = seeded.below(10) < 3;
                        plan.put(number, drawn, preemptible, &mut seeded);
                    }
                }
            }
            Fill::Empty { .. } => {}
            Fill::Holding { instances } => {
                for _ in 0..share(instances, self.hosts, number) {
                    let drawn = *seeded.pick(&PREEMPTIBLE_MIX).unwrap_or(&&TINY);
                    let preemptible = plan.guests.len().is_multiple_of(2);
                    plan.put(number, drawn, preemptible, &mut seeded);
                }
            }
            Fill::Uniform { slots } => {
                (0..slots).for_each(|_| plan.put(number, &SMALL, true, &mut seeded));
            }
        }
        plan
    }

    /// The table of the engine.
    ///
    /// # Errors
    /// Never: every instance is on a host that is there.
    pub fn table(&self, progress: &mut dyn Progress) -> Result<HostTable, EngineError> {
        let mut table = HostTable::new();
        progress.begin("building the table", u64::from(self.hosts));
        let builder = Builder::new()?;
        for number in 0..self.hosts {
            builder.put_host(&mut table, number, self);
            builder.put_guests(&mut table, number, &self.host(number))?;
            if number.is_multiple_of(1024) {
                progress.set(u64::from(number));
            }
        }
        Ok(table)
    }
}

/// How many of all are on one of the hosts, if no two hosts differ by more than one.
fn share(all: u32, hosts: u32, number: u32) -> u64 {
    let up_to = |n: u64| u64::from(all) * n / u64::from(hosts.max(1));
    up_to(u64::from(number) + 1) - up_to(u64::from(number))
}

fn capacity_for(fill: Fill) -> Amounts {
    let times = |n: u32| {
        let n = i64::from(n);
        [
            (n * HALF_VCPUS_EACH + 1) / 2,
            n * RAM_MB_EACH,
            n * DISK_GB_EACH,
        ]
    };
    match fill {
        Fill::Saturated { preemptibles } => times(preemptibles.max(1)),
        Fill::Partly => times(16),
        // Whether they fit does not matter for what they take in memory.
        Fill::Holding { .. } => times(16),
        Fill::Empty { slots } | Fill::Uniform { slots } => {
            SMALL.amounts().map(|amount| amount * i64::from(slots))
        }
    }
}

impl HostPlan {
    /// What everybody takes together, or only the normal ones.
    #[must_use]
    pub fn used(&self, preemptible_too: bool) -> Amounts {
        let counted = self
            .guests
            .iter()
            .filter(|g| preemptible_too || !g.preemptible);
        counted.fold([0; 3], |sum, guest| plus(sum, guest.size.amounts(), 1))
    }

    /// True if one of a size fits, and so many of the smallest size behind it.
    fn fits(&self, size: &Size, tinies: i64) -> bool {
        let needed = plus(plus(self.taken, size.amounts(), 1), TINY.amounts(), tinies);
        needed.iter().zip(self.capacity).all(|(n, has)| *n <= has)
    }

    fn put(
        &mut self,
        host: u32,
        size: &'static Size,
        preemptible: bool,
        seeded: &mut SeededNumbers,
    ) {
        let place = u128::from(host) << 24 | self.guests.len() as u128;
        self.taken = plus(self.taken, size.amounts(), 1);
        let age = i64::try_from(seeded.below(OLDEST_MILLIS)).unwrap_or(0);
        self.guests.push(BenchInstance {
            id: u128::from(seeded.draw()) << 64 | place,
            size,
            preemptible,
            launched_millis: NOW_MILLIS - age,
            project: seeded.below(PROJECTS),
        });
    }
}

/// A sum of amounts, the second one so many times.
#[must_use]
pub fn plus(one: Amounts, other: Amounts, times: i64) -> Amounts {
    [0, 1, 2].map(|class| one[class] + other[class] * times)
}

#[must_use]
pub fn host_name(number: u32) -> String {
    format!("host-{number:06}")
}

/// Puts hosts into tables and keeps what is the same for all.
#[derive(Debug)]
pub struct Builder {
    resources: BTreeMap<&'static str, Resources>,
}

impl Builder {
    /// Works out the sizes.
    ///
    /// # Errors
    /// Never: sizes are below the limits of the model.
    pub fn new() -> Result<Self, EngineError> {
        let sizes = [&TINY, &SMALL, &MEDIUM, &LARGE, &XLARGE, &COMPUTE, &MEMORY];
        let resources = sizes
            .into_iter()
            .map(|size| Ok((size.name, size.resources()?)))
            .collect::<Result<_, EngineError>>()?;
        Ok(Self { resources })
    }

    /// Puts a host of a plan, without anybody on it.
    pub fn put_host(&self, table: &mut HostTable, number: u32, plan: &CloudPlan) {
        table.put_host(&host(number, capacity_for(plan.fill)));
    }

    /// Puts everybody on a host that is there.
    ///
    /// # Errors
    /// The host is not there.
    pub fn put_guests(
        &self,
        table: &mut HostTable,
        number: u32,
        plan: &HostPlan,
    ) -> Result<(), EngineError> {
        let name = host_name(number);
        plan.guests
            .iter()
            .try_for_each(|guest| table.put_instance(&self.instance(guest, &name)))
    }

    /// An instance as the table takes it.
    #[must_use]
    pub fn instance(&self, guest: &BenchInstance, host: &str) -> Instance {
        Instance {
            id: ServerId(Uuid::from_u128(guest.id)),
            name: format!("server-{}", guest.id & 0xffff_ffff),
            project_id: format!("project-{}", guest.project),
            host: host.to_owned(),
            resources: self
                .resources
                .get(guest.size.name)
                .cloned()
                .unwrap_or_default(),
            retained: Resources::new(),
            preemptible: guest.preemptible,
            group_id: None,
            launched_at: Some(Timestamp::from_millis(guest.launched_millis)),
            protected_until: None,
            price_per_hour: Money::default(),
            max_price: Money::default(),
            flavor: String::new(),
            ends_at: None,
            priority: 0,
            phase: InstancePhase::Running,
        }
    }
}

fn host(number: u32, capacity: Amounts) -> Host {
    let [vcpus, ram_mb, disk_gb] = capacity.map(|n| u64::try_from(n).unwrap_or(0));
    Host {
        name: host_name(number),
        inventory: BTreeMap::from([
            (ResourceClass::vcpu(), Inventory::of(vcpus)),
            (ResourceClass::memory_mb(), Inventory::of(ram_mb)),
            (ResourceClass::disk_gb(), Inventory::of(disk_gb)),
        ]),
        traits: Default::default(),
        disabled_reason: None,
        reclaim: None,
        agent_session: None,
        removed_at: None,
        last_seen: None,
        storage: None,
        created_at: Timestamp::from_millis(i64::from(number)),
    }
}

/// Normal requests of mixed sizes, always the same for a seed. The identifiers are none of any
/// cloud's.
#[must_use]
pub fn requests(count: u32, seed: u64) -> Vec<(&'static Size, PlacementRequest)> {
    // A stream that no host has.
    let mut seeded = SeededNumbers::new(seed, u64::MAX);
    (0..count)
        .map(|number| {
            let size = *seeded.pick(&REQUEST_MIX).unwrap_or(&&SMALL);
            (size, request(size.flavor(), number))
        })
        .collect()
}

/// A request for one instance.
#[must_use]
pub fn request(flavor: Flavor, number: u32) -> PlacementRequest {
    PlacementRequest {
        server_ids: vec![ServerId(Uuid::from_u128(
            u128::from(u64::MAX) << 64 | u128::from(number),
        ))],
        project_id: "project-n".to_owned(),
        flavor,
        availability_zone: None,
        group_id: None,
        ignore_hosts: Vec::new(),
        force_hosts: Vec::new(),
        alternates: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoProgress;

    fn saturated(preemptibles: u32) -> CloudPlan {
        CloudPlan {
            hosts: 50,
            fill: Fill::Saturated { preemptibles },
            seed: 1,
        }
    }

    #[test]
    fn saturated_hosts_hold_what_was_asked_for_and_have_no_room_left() {
        for preemptibles in [1, 8, 16, 40] {
            for number in 0..50 {
                let host = saturated(preemptibles).host(number);
                let staying = host.guests.iter().filter(|g| g.preemptible).count();
                assert_eq!(staying, preemptibles as usize);
                let used = host.used(true);
                let within = used
                    .iter()
                    .zip(host.capacity)
                    .all(|(used, has)| *used <= has);
                assert!(within, "{used:?} of {:?}", host.capacity);
                assert!(!host.fits(&TINY, 0));
            }
        }
    }

    #[test]
    fn a_cloud_is_the_same_every_time_and_another_one_with_another_seed() {
        let ids = |seed: u64| -> Vec<u128> {
            let plan = CloudPlan {
                seed,
                ..saturated(8)
            };
            plan.host(3).guests.iter().map(|g| g.id).collect()
        };
        assert_eq!(ids(1), ids(1));
        assert_ne!(ids(1), ids(2));
    }

    #[test]
    fn the_table_holds_what_the_plan_says() {
        let plan = saturated(8);
        let table = plan.table(&mut NoProgress).unwrap();
        table.check_consistency().unwrap();
        assert_eq!(table.len(), 50);
        for number in 0..50 {
            let there = table.instances_on(&host_name(number));
            assert_eq!(there.len(), plan.host(number).guests.len());
        }
    }

    #[test]
    fn instances_that_are_shared_out_are_all_there() {
        for (all, hosts) in [(0, 3), (10, 3), (1600, 100), (7, 11)] {
            let shares: Vec<u64> = (0..hosts).map(|number| share(all, hosts, number)).collect();
            assert_eq!(shares.iter().sum::<u64>(), u64::from(all));
            assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn no_two_instances_share_an_identifier() {
        let plan = saturated(16);
        let mut ids: Vec<u128> = (0..50)
            .flat_map(|number| plan.host(number).guests)
            .map(|guest| guest.id)
            .collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}
