//! The central scheduler of long jobs: each task to the server on which it will wait least, by the
//! estimates.

use std::collections::BTreeSet;

/// What it knows of the servers that long jobs may use, which are numbered from 0.
#[derive(Debug, Clone)]
pub(crate) struct CentralScheduler {
    /// When the long tasks of a server will be done, and its number; 0 for a server without long
    /// tasks.
    order: BTreeSet<(u64, u32)>,
    servers: Vec<ServerLoad>,
}

#[derive(Debug, Clone, Copy, Default)]
struct ServerLoad {
    free_us: u64,
    /// Estimates of the tasks that wait, microseconds.
    waiting_us: u64,
    /// Tasks that run, wait or are on their way.
    tasks: u32,
}

impl CentralScheduler {
    pub(crate) fn new(servers: u32) -> Self {
        Self {
            order: (0..servers).map(|server| (0, server)).collect(),
            servers: vec![ServerLoad::default(); servers as usize],
        }
    }

    /// True if the server has long tasks, or will in a moment.
    pub(crate) fn is_long(&self, server: u32) -> bool {
        self.known(server).tasks > 0
    }

    /// Chooses the server for a task; true if it had no long task before.
    pub(crate) fn place(&mut self, now_us: u64, estimate_us: u64) -> Option<(u32, bool)> {
        let (free_us, server) = *self.order.first()?;
        let mut known = self.known(server);
        let was_free = known.tasks == 0;
        known.tasks += 1;
        known.waiting_us += estimate_us;
        // Who takes longer than estimated is expected to be done at any moment.
        known.free_us = free_us.max(now_us) + estimate_us;
        self.set(server, known);
        Some((server, was_free))
    }

    /// A task has begun.
    pub(crate) fn began(&mut self, now_us: u64, server: u32, estimate_us: u64) {
        let mut known = self.known(server);
        known.free_us = now_us + known.waiting_us;
        known.waiting_us -= estimate_us;
        self.set(server, known);
    }

    /// A task is done; true if it was the last one there.
    pub(crate) fn ended(&mut self, now_us: u64, server: u32) -> bool {
        let mut known = self.known(server);
        known.tasks -= 1;
        known.free_us = if known.tasks == 0 {
            0
        } else {
            now_us + known.waiting_us
        };
        self.set(server, known);
        known.tasks == 0
    }

    fn known(&self, server: u32) -> ServerLoad {
        let known = self.servers.get(server as usize);
        known.copied().unwrap_or_default()
    }

    fn set(&mut self, server: u32, now: ServerLoad) {
        if let Some(known) = self.servers.get_mut(server as usize) {
            self.order.remove(&(known.free_us, server));
            self.order.insert((now.free_us, server));
            *known = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_goes_where_it_waits_least() {
        let mut central = CentralScheduler::new(2);
        let mut place = |now, estimate| central.place(now, estimate).unwrap();
        assert_eq!(place(0, 100), (0, true));
        assert_eq!(place(0, 30), (1, true));
        assert_eq!(place(0, 30), (1, false));
        assert_eq!(place(0, 30), (1, false));
        assert_eq!(place(0, 5), (1, false));
        assert_eq!(place(0, 5), (1, false));
        assert_eq!(place(0, 5), (0, false));
    }

    #[test]
    fn estimates_are_put_right_by_what_happens() {
        let mut central = CentralScheduler::new(2);
        central.place(0, 100);
        central.place(0, 110);
        central.began(0, 0, 100);
        central.began(0, 1, 110);
        // Server 1 is done early, so it comes first; then it is as good as 0.
        assert!(central.ended(20, 1));
        assert!(!central.is_long(1));
        assert_eq!(central.place(20, 90), Some((1, true)));
        assert_eq!(central.place(20, 1), Some((0, false)));
    }
}
