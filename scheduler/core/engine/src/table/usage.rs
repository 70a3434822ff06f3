//! What is used and free, host by host and in all.

use super::{ClassIndex, HostIndex, HostTable};
use ebbtide_model::{HostHealth, ResourceClass, Resources};

/// One resource class of one host, or of all of them. Amounts are in the unit that the class names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassUsage {
    pub class: ResourceClass,
    /// What instances may use in all: (total − reserved) × allocation ratio.
    pub capacity: i64,
    /// Used by normal instances, claims and builds included, plus what no eviction frees: the disks
    /// of preemptible instances that are, or as victims would be, stopped or hibernated.
    pub normal: i64,
    /// What an eviction of all preemptible instances that are not leaving yet would free.
    pub preemptible: i64,
    /// What the preemptible instances that are leaving will free.
    pub leaving: i64,
    /// The part of `normal` and `preemptible` that belongs to claims whose instances have not
    /// started yet.
    pub claimed: i64,
    /// Free in the full state h_f. Negative while victims leave whose capacity is claimed already.
    pub free_full: i64,
    /// Free in the normal state h_n.
    pub free_normal: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostUsage {
    pub host: String,
    /// Whether it may get new instances.
    pub health: HostHealth,
    /// Its instances without those that are stopped or hibernated. `classes` includes what these
    /// still hold.
    pub servers: u32,
    /// Its preemptible instances that are not leaving.
    pub staying_preemptible_servers: u32,
    /// The classes that the host has or that an instance on it uses, by name.
    pub classes: Vec<ClassUsage>,
}

impl HostUsage {
    /// How many instances with these resources fit into what `free` says of each class.
    #[must_use]
    pub fn places(&self, takes: &Resources, free: fn(&ClassUsage) -> i64) -> u64 {
        let of_class = takes.iter().filter(|(_, amount)| *amount > 0);
        let places = of_class.map(|(class, amount)| {
            let known = self.classes.iter().find(|known| known.class == *class);
            let free = known.map_or(0, |known| u64::try_from(free(known)).unwrap_or(0));
            free / amount
        });
        places.min().unwrap_or(0)
    }
}

/// How many instances a host has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCounts<'a> {
    pub name: &'a str,
    /// Whether it may get new instances.
    pub health: HostHealth,
    /// All its instances but those that are stopped or hibernated.
    pub servers: u32,
    /// Its preemptible instances that are not leaving.
    pub staying_preemptible_servers: u32,
}

impl HostTable {
    /// What is used and free on a host; `None` if it is unknown.
    #[must_use]
    pub fn usage(&self, host: &str) -> Option<HostUsage> {
        let index = self.find_host(host)?;
        let view = self.host_counts(index);
        let mut classes: Vec<ClassUsage> = (0..self.columns.len())
            .map(|class| self.class_usage(index, ClassIndex::new(class)))
            .filter(|u| (u.capacity, u.normal, u.preemptible, u.leaving) != (0, 0, 0, 0))
            .collect();
        classes.sort_by(|a, b| a.class.cmp(&b.class));
        Some(HostUsage {
            host: view.name.to_owned(),
            health: view.health,
            servers: view.servers,
            staying_preemptible_servers: view.staying_preemptible_servers,
            classes,
        })
    }

    /// Sums over all hosts, whatever their health, by name of the class: one for each class that a
    /// host has or an instance uses.
    #[must_use]
    pub fn totals(&self) -> Vec<ClassUsage> {
        let mut totals: Vec<ClassUsage> = self
            .columns
            .iter()
            .zip(&self.classes)
            .map(|(columns, class)| {
                let sum = |column: &[i64]| column.iter().sum::<i64>();
                let (capacity, normal) = (sum(&columns.capacity), sum(&columns.normal));
                let (preemptible, leaving) = (sum(&columns.preemptible), sum(&columns.leaving));
                ClassUsage {
                    class: class.clone(),
                    capacity,
                    normal,
                    preemptible,
                    leaving,
                    claimed: sum(&columns.claimed),
                    free_full: capacity - normal - preemptible - leaving,
                    free_normal: capacity - normal,
                }
            })
            .filter(|u| (u.capacity, u.normal, u.preemptible, u.leaving) != (0, 0, 0, 0))
            .collect();
        totals.sort_by(|a, b| a.class.cmp(&b.class));
        totals
    }

    /// All hosts, in the order of their registration.
    pub fn hosts(&self) -> impl Iterator<Item = HostCounts<'_>> {
        self.order.iter().map(|&host| self.host_counts(host))
    }

    fn host_counts(&self, host: HostIndex) -> HostCounts<'_> {
        HostCounts {
            name: self.host_name(host),
            health: self.health(host),
            servers: self.counts.instances[host.at()],
            staying_preemptible_servers: self.counts.preemptible[host.at()],
        }
    }

    fn class_usage(&self, host: HostIndex, class: ClassIndex) -> ClassUsage {
        let columns = &self.columns[class.at()];
        let at = host.at();
        ClassUsage {
            class: self.classes[class.at()].clone(),
            capacity: columns.capacity[at],
            normal: columns.normal[at],
            preemptible: columns.preemptible[at],
            leaving: columns.leaving[at],
            claimed: columns.claimed[at],
            free_full: columns.free_full(host),
            free_normal: columns.free_normal(host),
        }
    }
}
