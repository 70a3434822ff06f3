//! A bag of tasks, the instance types to run it on, and the rules: checked once, then trusted.

use crate::error::BagError;
use ebbtide_model::Money;
use std::collections::HashSet;

/// Ten years: no duration is longer, so that sums over a million tasks stay far from overflow.
/// Seconds.
pub const LONGEST: u64 = 10 * 365 * 86_400;
/// As many tasks as a plan may have.
pub const MOST_TASKS: usize = 1_000_000;
/// As many instance types as a plan may choose from.
pub const MOST_TYPES: usize = 1_000;
/// A petabyte: no memory is larger. MB.
const LARGEST_MB: u64 = 1 << 30;
/// More virtual CPUs than any instance has.
const MOST_VCPUS: u32 = 65_536;

/// What a task saves of its work, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoints {
    /// Work between two checkpoints, seconds on the base machine.
    pub interval: u64,
    /// How long a checkpoint takes, seconds on the base machine.
    pub cost: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its name, unique in the bag.
    pub name: String,
    /// How long it takes on the base machine, whose slowdown is 1, seconds.
    pub seconds: u64,
    /// What it needs, MB.
    pub memory_mb: u64,
    /// Whether it can go on from where it was on another instance.
    pub checkpoints: Option<Checkpoints>,
}

/// One instance type. A core runs one task at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct InstanceType {
    /// Its name, unique.
    pub name: String,
    /// Tasks that run at the same time.
    pub vcpus: u32,
    /// Memory, MB.
    pub memory_mb: u64,
    /// For an hour, on demand; without it the type is no backup.
    pub on_demand: Option<Money>,
    /// For an hour, preemptible; without it the type is not used for the primary map.
    pub preemptible: Option<Money>,
    /// By how much a task takes longer than on the base machine (Table VI): below 1 is faster.
    pub slowdown: f64,
}

/// What has to be kept, and how it is paid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// By when all tasks have to be done, seconds since the begin.
    pub deadline: u64,
    /// Each instance is paid in whole slots of so many seconds.
    pub slot: u64,
    /// From the launch of an instance to its first task, seconds.
    pub boot: u64,
    /// Up to which share of the deadline a preemptible instance may be given further tasks (the
    /// paper's `VM_time_limit`), above 0 to 1.
    pub share: f64,
    /// Seconds before the deadline that no plan uses: for what is late in the world outside.
    pub margin: u64,
    /// The grain with which the greedy plan compares running times, seconds (the paper's period).
    pub period: u64,
    /// How much of the backups' price counts in choosing among plans, 0 to 1: the share of
    /// instances of which one expects that they hibernate and do not come back.
    pub risk: f64,
}

impl Default for Rules {
    /// The paper's: hours as slots, half of the deadline, no boot time; a period of a minute.
    fn default() -> Self {
        Self {
            deadline: 0,
            slot: 3600,
            boot: 0,
            share: 0.5,
            margin: 0,
            period: 60,
            risk: 0.0,
        }
    }
}

/// A bag that can be planned: every number is usable, and every task fits on an on-demand type.
#[derive(Debug, Clone, PartialEq)]
pub struct Bag {
    tasks: Vec<Task>,
    types: Vec<InstanceType>,
    rules: Rules,
    /// Seconds of each task on each type, task by task; `None` where it does not fit.
    runtimes: Vec<Option<u64>>,
    /// Types that can be best as a backup: no other one is as cheap, as fast and as large.
    backup_types: Vec<usize>,
    /// The same for the primary map.
    primary_types: Vec<usize>,
    /// For each task its fastest on-demand type, with the seconds there.
    fastest: Vec<(u64, usize)>,
}

impl Bag {
    /// Checks everything.
    ///
    /// # Errors
    /// All of [`BagError`] but those of events and prices' traces; [`BagError::Infeasible`] is the
    /// proof that the deadline cannot be met.
    pub fn new(tasks: Vec<Task>, types: Vec<InstanceType>, rules: Rules) -> Result<Self, BagError> {
        check_rules(&rules)?;
        check_types(&types)?;
        check_tasks(&tasks)?;
        let runtimes = tasks
            .iter()
            .flat_map(|task| types.iter().map(|ty| runtime(task, ty, 0)))
            .collect();
        let mut bag = Self {
            backup_types: undominated(&types, |ty| ty.on_demand),
            primary_types: undominated(&types, |ty| ty.preemptible),
            fastest: Vec::new(),
            tasks,
            types,
            rules,
            runtimes,
        };
        bag.fastest = crate::bound::all_fastest(&bag)?;
        crate::bound::prove(&bag)?;
        Ok(bag)
    }

    /// The same bag with other rules.
    ///
    /// # Errors
    /// As [`Self::new`], for the rules.
    pub fn with_rules(&self, rules: Rules) -> Result<Self, BagError> {
        check_rules(&rules)?;
        let bag = Self {
            rules,
            ..self.clone()
        };
        crate::bound::prove(&bag)?;
        Ok(bag)
    }

    /// The tasks; elsewhere a task is its place here.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The instance types; elsewhere a type is its place here.
    #[must_use]
    pub fn types(&self) -> &[InstanceType] {
        &self.types
    }

    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Seconds of a task on a type, its checkpoints included; `None` if it does not fit.
    #[must_use]
    pub fn runtime(&self, task: usize, ty: usize) -> Option<u64> {
        self.runtimes[task * self.types.len() + ty]
    }

    /// The same if so much of its work, in seconds on the base machine, is saved.
    #[must_use]
    pub fn rest(&self, task: usize, ty: usize, saved: u64) -> Option<u64> {
        if saved == 0 {
            return self.runtime(task, ty);
        }
        runtime(&self.tasks[task], &self.types[ty], saved)
    }

    /// The fastest on-demand type of a task, with the seconds there; the cheaper one of equals.
    #[must_use]
    pub fn fastest(&self, task: usize) -> (u64, usize) {
        self.fastest[task]
    }

    /// On-demand types that can be best for something.
    pub(crate) fn backup_types(&self) -> &[usize] {
        &self.backup_types
    }

    /// Preemptible types that can be best for something.
    pub(crate) fn primary_types(&self) -> &[usize] {
        &self.primary_types
    }

    /// When everything has to be done: the deadline without its margin.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.rules.deadline - self.rules.margin
    }

    /// Until when a preemptible instance may be given further tasks.
    #[must_use]
    pub fn limit(&self) -> u64 {
        ((self.rules.deadline as f64 * self.rules.share) as u64).min(self.end())
    }

    /// What an instance costs that is used for `seconds`, millionths: whole slots.
    #[must_use]
    pub fn price(&self, hourly: Money, seconds: u64) -> u64 {
        let slots = seconds.div_ceil(self.rules.slot);
        slots_price(hourly, slots, self.rules.slot)
    }
}

/// So many slots at a price for an hour, millionths, rounded up.
#[must_use]
pub fn slots_price(hourly: Money, slots: u64, slot: u64) -> u64 {
    let micros = u128::from(hourly.micros()) * u128::from(slots) * u128::from(slot);
    u64::try_from(micros.div_ceil(3600)).unwrap_or(u64::MAX)
}

/// Seconds of what is left of a task on a type.
fn runtime(task: &Task, ty: &InstanceType, saved: u64) -> Option<u64> {
    if task.memory_mb > ty.memory_mb {
        return None;
    }
    let left = task.seconds.saturating_sub(saved);
    // The last part of the work needs no checkpoint: there is nothing after it.
    let checkpoints = task
        .checkpoints
        .map_or(0, |c| left.saturating_sub(1) / c.interval.max(1) * c.cost);
    let base = left.saturating_add(checkpoints) as f64;
    // What takes longer than any deadline need not be told apart: sums stay small.
    Some(
        (base * ty.slowdown - 1e-6)
            .ceil()
            .clamp(1.0, 2.0 * LONGEST as f64) as u64,
    )
}

/// Those types sold at a price than which no other one is as cheap, as fast and as large; the first
/// of equals.
fn undominated(
    types: &[InstanceType],
    price: impl Fn(&InstanceType) -> Option<Money>,
) -> Vec<usize> {
    let better = |a: &InstanceType, b: &InstanceType| {
        price(a).is_some_and(|p| price(b).is_some_and(|q| p <= q))
            && a.slowdown <= b.slowdown
            && a.vcpus >= b.vcpus
            && a.memory_mb >= b.memory_mb
    };
    let beaten = |at: usize, ty: &InstanceType| {
        types
            .iter()
            .enumerate()
            .any(|(i, other)| i != at && better(other, ty) && (i < at || !better(ty, other)))
    };
    types
        .iter()
        .enumerate()
        .filter(|(at, ty)| price(ty).is_some() && !beaten(*at, ty))
        .map(|(at, _)| at)
        .collect()
}

fn value<T>(what: String, value: impl ToString, allowed: &'static str) -> Result<T, BagError> {
    Err(BagError::Value {
        what,
        value: value.to_string(),
        allowed,
    })
}

fn check_rules(rules: &Rules) -> Result<(), BagError> {
    let seconds = [
        ("the deadline", rules.deadline, 1),
        ("the billing slot", rules.slot, 1),
        ("the boot time", rules.boot, 0),
        ("the margin", rules.margin, 0),
        ("the period", rules.period, 1),
    ];
    for (what, given, least) in seconds {
        if given < least || given > LONGEST {
            let allowed = if least == 1 {
                "above zero and at most ten years"
            } else {
                "at most ten years"
            };
            return value(what.to_owned(), format!("{given} s"), allowed);
        }
    }
    if rules.margin >= rules.deadline {
        return value(
            "the margin".to_owned(),
            format!("{} s", rules.margin),
            "shorter than the deadline",
        );
    }
    if !(rules.share > 0.0 && rules.share <= 1.0) {
        return value(
            "the share of the deadline".to_owned(),
            rules.share,
            "above 0 and at most 1",
        );
    }
    if !(0.0..=1.0).contains(&rules.risk) {
        return value("the risk".to_owned(), rules.risk, "from 0 to 1");
    }
    Ok(())
}

fn check_types(types: &[InstanceType]) -> Result<(), BagError> {
    if types.is_empty() {
        return Err(BagError::Nothing("instance type"));
    }
    if types.len() > MOST_TYPES {
        return Err(BagError::TooMany {
            what: "instance type",
            found: types.len(),
            most: MOST_TYPES,
        });
    }
    unique("instance type", types.iter().map(|ty| ty.name.as_str()))?;
    for ty in types {
        let of = |what: &str| format!("the {what} of type {:?}", ty.name);
        if !(ty.slowdown.is_finite() && (1e-6..=1e6).contains(&ty.slowdown)) {
            return value(
                of("slowdown"),
                ty.slowdown,
                "a number from 0.000001 to 1000000",
            );
        }
        if ty.vcpus == 0 || ty.vcpus > MOST_VCPUS {
            return value(of("number of vCPUs"), ty.vcpus, "from 1 to 65536");
        }
        if ty.memory_mb == 0 || ty.memory_mb > LARGEST_MB {
            return value(
                of("memory"),
                format!("{} MB", ty.memory_mb),
                "above zero and at most a petabyte",
            );
        }
        if ty.on_demand.is_none() && ty.preemptible.is_none() {
            return Err(BagError::Price(format!(
                "type {:?} has no price, neither on demand nor preemptible",
                ty.name
            )));
        }
    }
    if types.iter().all(|ty| ty.on_demand.is_none()) {
        return Err(BagError::Price(
            "no type has an on-demand price, so no task can have a backup".to_owned(),
        ));
    }
    Ok(())
}

fn check_tasks(tasks: &[Task]) -> Result<(), BagError> {
    if tasks.is_empty() {
        return Err(BagError::Nothing("task"));
    }
    if tasks.len() > MOST_TASKS {
        return Err(BagError::TooMany {
            what: "task",
            found: tasks.len(),
            most: MOST_TASKS,
        });
    }
    unique("task", tasks.iter().map(|task| task.name.as_str()))?;
    for task in tasks {
        let of = |what: &str| format!("the {what} of task {:?}", task.name);
        if task.seconds == 0 || task.seconds > LONGEST {
            return value(
                of("duration"),
                format!("{} s", task.seconds),
                "above zero and at most ten years",
            );
        }
        if task.memory_mb > LARGEST_MB {
            return value(
                of("memory"),
                format!("{} MB", task.memory_mb),
                "at most a petabyte",
            );
        }
        if let Some(checkpoints) = task.checkpoints {
            if checkpoints.interval == 0 || checkpoints.interval > LONGEST {
                return value(
                    of("checkpoint interval"),
                    format!("{} s", checkpoints.interval),
                    "above zero and at most ten years",
                );
            }
            if checkpoints.cost > checkpoints.interval {
                return value(
                    of("checkpoint cost"),
                    format!("{} s", checkpoints.cost),
                    "at most the interval between checkpoints",
                );
            }
        }
    }
    Ok(())
}

fn unique<'a>(what: &'static str, names: impl Iterator<Item = &'a str>) -> Result<(), BagError> {
    let mut seen = HashSet::new();
    for name in names {
        if name.is_empty() {
            return value(
                format!("the name of a {what}"),
                "empty",
                "at least a letter",
            );
        }
        if !seen.insert(name) {
            return Err(BagError::Duplicate {
                what,
                name: name.to_owned(),
            });
        }
    }
    Ok(())
}
