//! What the executor knows of one instance.

use crate::map::Market;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VmPhase {
    /// A backup that was not needed so far.
    Planned,
    /// Asked for.
    Launched,
    Up,
    /// Frozen; `up` if it had started before.
    Hibernated {
        up: bool,
    },
    /// Released, or interrupted for good.
    Gone,
}

#[derive(Debug, Clone)]
pub(super) struct ExecutorInstance {
    pub(super) ty: usize,
    pub(super) market: Market,
    pub(super) cores: Vec<Vec<usize>>,
    pub(super) phase: VmPhase,
    /// Tasks of it that are not done anywhere.
    pub(super) left: usize,
    /// For each core what it runs, and the place of what comes then.
    running: Vec<(Option<usize>, usize)>,
}

impl ExecutorInstance {
    pub(super) fn new(ty: usize, market: Market, cores: &[Vec<usize>]) -> Self {
        Self {
            ty,
            market,
            cores: cores.to_vec(),
            phase: VmPhase::Planned,
            left: cores.iter().map(Vec::len).sum(),
            running: vec![(None, 0); cores.len()],
        }
    }

    /// The tasks that run on its cores.
    pub(super) fn tasks(&self) -> impl Iterator<Item = usize> + '_ {
        self.running.iter().filter_map(|(task, _)| *task)
    }

    /// Takes a task off its core, if it runs here.
    pub(super) fn stop(&mut self, task: usize) -> Option<usize> {
        let core = self.running.iter().position(|(r, _)| *r == Some(task))?;
        self.running[core].0 = None;
        Some(core)
    }

    /// Gives every idle core its next task that is not done, if the instance is up.
    pub(super) fn next(&mut self, done: impl Fn(usize) -> bool) -> Vec<(usize, usize)> {
        let mut begun = Vec::new();
        if self.phase != VmPhase::Up {
            return begun;
        }
        for (core, (running, place)) in self.running.iter_mut().enumerate() {
            if running.is_some() {
                continue;
            }
            while let Some(&task) = self.cores[core].get(*place) {
                *place += 1;
                if !done(task) {
                    *running = Some(task);
                    begun.push((core, task));
                    break;
                }
            }
        }
        begun
    }

    /// A new instance in its place: everything from the start.
    pub(super) fn restart(&mut self) {
        self.phase = VmPhase::Launched;
        self.running.fill((None, 0));
    }
}
