//! Plans for a given set of instances: the planner assigns the tasks and does not choose the number
//! of instances.

use crate::error::BagError;
use crate::greedy::{OpenInstance, in_order};
use crate::input::Bag;
use crate::map::Market;
use crate::plan::{Method, Plan, PlannedVm};

/// A plan that uses exactly these preemptible instances, given as `(type, count)` pairs. The
/// planner takes the tasks by falling memory and duration and puts each on the instance where it
/// ends first. The planner ignores the deadline share, because the caller has chosen the instances.
///
/// # Errors
/// [`BagError::Fleet`] if the tasks do not fit or do not end in time; [`BagError::Price`] for a
/// type without preemptible price.
pub fn plan_on(bag: &Bag, fleet: &[(usize, usize)]) -> Result<Plan, BagError> {
    let refused = |problem: String| Err(BagError::Fleet(problem));
    let mut open: Vec<OpenInstance> = Vec::new();
    for &(ty, count) in fleet {
        let Some(t) = bag.types().get(ty) else {
            return refused(format!("there is no type {ty}"));
        };
        if t.preemptible.is_none() {
            return Err(BagError::Price(format!(
                "type {:?} has no preemptible price",
                t.name
            )));
        }
        if open.len() + count > bag.tasks().len().max(1) {
            return refused(format!(
                "there are more instances than tasks, which are {}",
                bag.tasks().len()
            ));
        }
        open.extend((0..count).map(|_| OpenInstance::new(ty, Market::Preemptible)));
    }
    for task in in_order(bag, 0..bag.tasks().len()) {
        let places = open.iter().enumerate().filter_map(|(at, o)| {
            let (load, _) = o.earliest(bag, task)?;
            Some((load + bag.runtime(task, o.ty())?, at))
        });
        let Some((end, at)) = places.min() else {
            return refused(format!(
                "task {:?} fits on none of the instances",
                bag.tasks()[task].name
            ));
        };
        if bag.rules().boot + end > bag.end() {
            return refused(format!(
                "task {:?} would end after {} s, the deadline is {} s",
                bag.tasks()[task].name,
                bag.rules().boot + end + bag.rules().margin,
                bag.rules().deadline
            ));
        }
        open[at].put(bag, task);
    }
    let vms = open.into_iter().map(OpenInstance::done);
    let planned = vms
        .filter(|vm| !vm.cores.is_empty())
        .map(|vm| PlannedVm::new(bag, vm));
    Ok(Plan::new(bag, planned.collect(), Method::Given))
}
