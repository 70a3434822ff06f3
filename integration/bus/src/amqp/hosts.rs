//! The bus's choice of host.

use ebbtide_amqp::HostChoice;

/// The host that worked last comes first, then those behind it in the order of the configuration.
#[derive(Debug)]
pub(crate) struct LastGoodHost {
    hosts: usize,
    first: usize,
}

impl LastGoodHost {
    pub(crate) fn new(hosts: usize) -> Self {
        Self { hosts, first: 0 }
    }
}

impl HostChoice for LastGoodHost {
    fn round(&mut self) -> Vec<usize> {
        (self.first..self.hosts).chain(0..self.first).collect()
    }

    fn connected(&mut self, host: usize) {
        self.first = host;
    }

    // A connection breaks more often than its host: the same one is tried first.
    fn lost(&mut self, _host: usize) {}

    fn returned(&mut self, host: usize) {
        self.first = host;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_good_host_is_tried_first_even_after_a_loss() {
        let mut hosts = LastGoodHost::new(3);
        assert_eq!(hosts.round(), [0, 1, 2]);
        hosts.connected(1);
        hosts.lost(1);
        assert_eq!(hosts.round(), [1, 2, 0]);
    }
}
