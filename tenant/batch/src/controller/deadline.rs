//! How deadlines are held.
//!
//! **The promise.** All that is left of a work always fits on on-demand servers alone before the
//! deadline: as soon as it would not any more, members take the on-demand servers, as many as there
//! are. What runs on a preemptible server then counts as not begun, unless its work is saved: a
//! member that cannot be saved gets a copy, and the one that is done first counts; a member that
//! can be saved is told to save, and goes on. So the deadline is met whatever the provider takes,
//! if on-demand servers come up in the time that they took before, and members are no longer than
//! their estimate with its reserve.
//!
//! What fits is Graham's bound for list scheduling: `(R - l) / m + l` for work `R` on `m` servers
//! with the longest member `l`. Stages that wait for others come after them.

use super::BatchController;
use crate::book::WorkBook;
use crate::error::BatchError;
use crate::settings::{ServerType, millis};
use crate::work::{Stage, Work};

impl BatchController {
    /// Whether a work has to use on-demand servers now. `false` without a deadline, and without
    /// on-demand types: then nothing can be done about it.
    pub(super) fn pressed(&self, now: i64, book: &WorkBook) -> bool {
        let Some(deadline) = book.deadline() else {
            return false;
        };
        let needed = self.needed(&book.work, |stage| self.left_of(book, stage));
        needed.is_some_and(|needed| now + needed >= deadline)
    }

    /// Refuses a deadline that cannot be met on on-demand servers alone, as far as lengths are
    /// known.
    pub(super) fn check_deadline(&self, work: &Work) -> Result<(), BatchError> {
        let Some(deadline) = work.deadline else {
            return Ok(());
        };
        let reserve = 1.0 + self.settings.policy.length_reserve;
        let known = |stage: usize| {
            let one = &work.stages[stage];
            let length = i64::try_from(one.length?).unwrap_or(i64::MAX / 2_000) * 1_000;
            let safe = (length as f64 * reserve).ceil() as i64;
            Some((safe.saturating_mul(one.members.len() as i64), safe))
        };
        if (0..work.stages.len()).any(|stage| known(stage).is_none()) {
            return Ok(());
        }
        let needed = self.needed(work, |stage| known(stage).unwrap_or((0, 0)));
        let needed = needed.map_or(0, |ms| ms.div_euclid(1_000) + 1);
        if u64::try_from(needed).unwrap_or(0) <= deadline {
            return Ok(());
        }
        let problem = format!(
            "it is {deadline} s; on on-demand servers alone, with the reserves of [policy], the work takes {needed} s"
        );
        Err(BatchError::Work {
            key: "deadline".to_owned(),
            problem,
        })
    }

    /// Work that is left of a stage, and of its longest member, milliseconds.
    fn left_of(&self, book: &WorkBook, stage: usize) -> (i64, i64) {
        let length = self.length(book, stage);
        let left = book.members[stage].iter().filter(|one| !one.done);
        let each = left.map(|one| length.after(one.saved).safe);
        each.fold((0, 0), |(sum, most), one| (sum + one, most.max(one)))
    }

    /// How long a work takes from now on, if on-demand servers are all that there is,
    /// milliseconds. `None` without on-demand types.
    fn needed(&self, work: &Work, left: impl Fn(usize) -> (i64, i64)) -> Option<i64> {
        let policy = &self.settings.policy;
        let on_demand = self
            .types
            .iter()
            .zip(&self.boots)
            .filter(|(ty, _)| !ty.preemptible);
        let boot = on_demand.map(|(_, boot)| *boot).max()?;
        let mut ends = vec![0; work.stages.len()];
        for (at, stage) in work.stages.iter().enumerate() {
            let begin = stage
                .after
                .iter()
                .map(|before| ends[*before])
                .max()
                .unwrap_or(0);
            let (sum, longest) = left(at);
            let slots = self.on_demand_slots(stage) as i64;
            if sum > 0 && slots == 0 {
                return None;
            }
            let takes = (sum - longest).checked_div(slots).unwrap_or(0) + longest;
            ends[at] = begin + takes;
        }
        let reserve = millis(policy.margin_seconds) + millis(policy.checkpoint_seconds);
        let longest = ends.into_iter().max().unwrap_or(0);
        Some(longest + boot + reserve)
    }

    /// How many members of a stage the on-demand servers can run at a time.
    pub(super) fn on_demand_slots(&self, stage: &Stage) -> usize {
        let on_demand = self.types.iter().filter(|ty| !ty.preemptible);
        on_demand.map(|ty| slots(ty, stage) * ty.nodes.len()).sum()
    }
}

/// How many members of a stage a server runs at a time.
fn slots(ty: &ServerType, stage: &Stage) -> usize {
    let by_memory = ty
        .memory_mb
        .checked_div(stage.memory_mb)
        .unwrap_or(u64::MAX);
    let by_cpus = u64::from(ty.vcpus / stage.cpus);
    usize::try_from(by_cpus.min(by_memory)).unwrap_or(usize::MAX)
}
