//! The broker: durable queues that keep what they have confirmed, and may give it out twice, late
//! or in another order.

use ebbtide_model::message::{Body, Message};
use std::collections::VecDeque;

/// One queue for each agent, one for the schedulers.
#[derive(Debug, Default)]
pub(crate) struct Broker {
    pub(crate) up: bool,
    pub(crate) agents: Vec<VecDeque<Message>>,
    pub(crate) reports: VecDeque<Message>,
}

impl Broker {
    pub(crate) fn new(agents: usize) -> Self {
        Self {
            up: true,
            agents: vec![VecDeque::new(); agents],
            reports: VecDeque::new(),
        }
    }

    /// A queue: those of the agents, then the schedulers'.
    pub(crate) fn queue(&mut self, which: u32) -> &mut VecDeque<Message> {
        let n = self.agents.len();
        let which = which as usize % (n + 1);
        if which == n {
            &mut self.reports
        } else {
            &mut self.agents[which]
        }
    }

    /// A message comes a second time, later. True if there was one.
    pub(crate) fn duplicate(&mut self, a: u32, b: u32) -> bool {
        let queue = self.queue(a);
        let len = queue.len();
        if len == 0 {
            return false;
        }
        let from = b as usize % len;
        let to = from + 1 + (b >> 8) as usize % (len - from);
        let message = queue[from].clone();
        queue.insert(to, message);
        true
    }

    /// A message is overtaken by another. True if there were two.
    pub(crate) fn reorder(&mut self, a: u32, b: u32) -> bool {
        let queue = self.queue(a);
        let len = queue.len();
        if len < 2 {
            return false;
        }
        let (from, to) = (b as usize % len, (b >> 8) as usize % len);
        queue.swap(from, to);
        from != to
    }

    /// A heartbeat is lost. True if there was one.
    pub(crate) fn lose_heartbeat(&mut self) -> bool {
        let place = self
            .reports
            .iter()
            .position(|m| matches!(m.body, Body::Heartbeat(_)));
        place.and_then(|place| self.reports.remove(place)).is_some()
    }
}
