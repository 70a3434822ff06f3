//! kombu's pauses and its order of hosts.

use std::time::Duration;

use ebbtide_amqp::{Backoff, HostChoice};
use ebbtide_runtime::ids;

use crate::{FailoverStrategy, RabbitOptions};

/// The pauses of `rabbit_retry_*`, `rabbit_interval_max` and `kombu_reconnect_*`.
#[derive(Debug)]
pub(crate) struct KombuBackoff {
    /// `kombu_reconnect_delay`.
    reconnect_delay: Duration,
    /// `kombu_reconnect_splay`: services come back at different times.
    splay: Duration,
    /// `rabbit_retry_interval`.
    first: Duration,
    /// `rabbit_retry_backoff`.
    step: Duration,
    longest: Duration,
    /// Full rounds without success in a row.
    failures: u32,
}

impl KombuBackoff {
    pub(crate) fn new(options: &RabbitOptions) -> Self {
        Self {
            reconnect_delay: options.reconnect_delay,
            splay: options.reconnect_splay,
            first: options.retry_interval,
            step: options.retry_backoff,
            longest: options.interval_max.max(options.retry_interval),
            failures: 0,
        }
    }
}

impl Backoff for KombuBackoff {
    fn after_loss(&mut self) -> Duration {
        self.reconnect_delay + part_of(self.splay)
    }

    fn after_round(&mut self) -> Duration {
        let pause = self.first + self.step.saturating_mul(self.failures);
        self.failures = self.failures.saturating_add(1);
        pause.min(self.longest)
    }

    fn after_return(&mut self) -> Duration {
        self.reset();
        part_of(self.splay)
    }

    fn reset(&mut self) {
        self.failures = 0;
    }
}

/// The hosts in a ring that begins at a random one. A lost host comes last.
#[derive(Debug)]
pub(crate) struct RotatingHosts {
    strategy: FailoverStrategy,
    order: Vec<usize>,
}

impl RotatingHosts {
    pub(crate) fn new(hosts: usize, strategy: FailoverStrategy) -> Self {
        let mut order: Vec<usize> = (0..hosts).collect();
        shuffle(&mut order);
        Self { strategy, order }
    }

    fn begin_at(&mut self, host: usize) {
        if let Some(place) = self.order.iter().position(|other| *other == host) {
            self.order.rotate_left(place);
        }
    }
}

impl HostChoice for RotatingHosts {
    fn round(&mut self) -> Vec<usize> {
        if self.strategy == FailoverStrategy::Shuffle {
            shuffle(&mut self.order);
        }
        self.order.clone()
    }

    fn connected(&mut self, host: usize) {
        self.begin_at(host);
    }

    fn lost(&mut self, host: usize) {
        self.begin_at(host);
        self.order.rotate_left(1);
    }

    fn returned(&mut self, host: usize) {
        self.order.retain(|other| *other != host);
        self.order.insert(0, host);
    }
}

/// A random part of a time.
fn part_of(whole: Duration) -> Duration {
    whole.mul_f64(ids::fraction())
}

/// Fisher and Yates.
fn shuffle(order: &mut [usize]) {
    for last in (1..order.len()).rev() {
        let bound = u64::try_from(last).unwrap_or(u64::MAX - 1) + 1;
        let other = usize::try_from(ids::seed() % bound).unwrap_or(0);
        order.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_part_can_be_short_or_long() {
        let whole = Duration::from_secs(4);
        let parts: Vec<Duration> = (0..1000).map(|_| part_of(whole)).collect();
        assert!(parts.iter().any(|part| *part < whole / 4));
        assert!(parts.iter().any(|part| *part > whole / 4 * 3));
        assert!(parts.iter().all(|part| *part < whole));
    }

    #[test]
    fn pauses_grow_by_the_backoff_up_to_the_longest() {
        let mut backoff = KombuBackoff::new(&RabbitOptions::default());
        let mut pause = || backoff.after_round().as_secs();
        let seconds: Vec<u64> = (0..17).map(|_| pause()).collect();
        assert_eq!(seconds[..4], [1, 3, 5, 7]);
        assert_eq!(seconds[15..], [30, 30]);
        backoff.failures = u32::MAX;
        assert_eq!(backoff.after_round().as_secs(), 30);
    }

    #[test]
    fn pauses_are_short_again_when_a_host_returns_or_a_connection_lasts() {
        let mut backoff = KombuBackoff::new(&RabbitOptions::default());
        for forget in [KombuBackoff::reset, |b: &mut KombuBackoff| {
            assert_eq!(b.after_return(), Duration::ZERO);
        }] {
            backoff.after_round();
            assert_eq!(backoff.after_round().as_secs(), 3);
            forget(&mut backoff);
            assert_eq!(backoff.after_round().as_secs(), 1);
            backoff.reset();
        }
    }

    #[test]
    fn a_lost_connection_waits_for_the_reconnect_delay_and_a_part_of_the_splay() {
        let mut backoff = KombuBackoff::new(&RabbitOptions {
            reconnect_delay: Duration::from_secs(2),
            reconnect_splay: Duration::from_secs(3),
            ..RabbitOptions::default()
        });
        let pause = backoff.after_loss();
        assert!(pause >= Duration::from_secs(2) && pause < Duration::from_secs(5));
    }

    #[test]
    fn a_lost_host_comes_last_and_a_returned_one_first() {
        let mut hosts = RotatingHosts::new(3, FailoverStrategy::RoundRobin);
        let first = hosts.round();
        let [a, b, c] = first[..] else {
            panic!("{first:?}")
        };
        hosts.connected(b);
        assert_eq!(hosts.round(), [b, c, a]);
        hosts.lost(b);
        assert_eq!(hosts.round(), [c, a, b]);
        hosts.returned(a);
        assert_eq!(hosts.round(), [a, c, b]);
    }

    #[test]
    fn a_shuffled_order_still_names_every_broker_once() {
        for count in 0..6 {
            let mut hosts = RotatingHosts::new(count, FailoverStrategy::Shuffle);
            let mut order = hosts.round();
            order.sort_unstable();
            assert_eq!(order, (0..count).collect::<Vec<_>>());
        }
    }
}
