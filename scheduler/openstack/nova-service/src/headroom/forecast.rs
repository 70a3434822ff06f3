//! How many servers the next requests will want before room can be made for them, from what was
//! requested in the last days. Pure.

use ebbtide_model::{Decision, DecisionId, DecisionOutcome, Seconds, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// How far back requests count: a week has its weekdays and its weekend.
pub(super) const HISTORY: Seconds = Seconds(7 * 24 * 3600);
/// Most requests that are kept, the latest ones.
pub(super) const MOST_REQUESTS: usize = 5000;
/// The share of bursts that are to find room at once, in per cent.
const SHARE: usize = 95;

/// A request for normal servers.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PastRequest {
    flavor: String,
    servers: u32,
    /// Where its servers went. None if it was refused: it may have wanted any host.
    hosts: Vec<String>,
}

/// The requests of the last days, by time.
#[derive(Debug, Default)]
pub(super) struct Demand {
    requests: BTreeMap<(Timestamp, DecisionId), PastRequest>,
}

impl Demand {
    /// Takes over a decision. A second time changes nothing.
    pub(super) fn put(&mut self, decision: &Decision) {
        let request = &decision.request;
        if request.flavor.is_preemptible() {
            return;
        }
        let hosts = match &decision.outcome {
            DecisionOutcome::Placed(placed) => placed.iter().map(|p| p.host.clone()).collect(),
            DecisionOutcome::NoValidHost(_) => Vec::new(),
        };
        let past = PastRequest {
            flavor: request.flavor.name.clone(),
            servers: u32::try_from(request.server_ids.len()).unwrap_or(u32::MAX),
            hosts,
        };
        self.requests.insert((decision.at, decision.id), past);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.requests.len()
    }

    /// Forgets what is too old, and the oldest of too many.
    pub(super) fn forget_old(&mut self, now: Timestamp) {
        let oldest = now.minus(HISTORY);
        while let Some(first) = self.requests.first_entry() {
            if first.key().0 >= oldest && self.requests.len() <= MOST_REQUESTS {
                return;
            }
            self.requests.pop_first();
        }
    }

    /// So many servers of a flavor are wanted within `lead` from a request on, itself included, in
    /// 95 of 100 such bursts or more. With `hosts`, requests count that went to one of them or were
    /// refused. 0 without requests.
    pub(super) fn forecast(
        &self,
        flavor: &str,
        hosts: Option<&BTreeSet<String>>,
        lead: Seconds,
    ) -> u32 {
        let is_there = |past: &PastRequest| match hosts {
            Some(wanted) => {
                past.hosts.is_empty() || past.hosts.iter().any(|host| wanted.contains(host))
            }
            None => true,
        };
        let counted = self.requests.iter();
        let counted = counted.filter(|(_, past)| past.flavor == flavor && is_there(past));
        let counted: Vec<(Timestamp, u64)> = counted
            .map(|((at, _), past)| (*at, u64::from(past.servers)))
            .collect();
        let mut bursts = Vec::with_capacity(counted.len());
        let (mut end, mut sum) = (0, 0);
        for (at, servers) in &counted {
            while let Some((later, more)) = counted.get(end) {
                if *later >= at.plus(lead) && *later > *at {
                    break;
                }
                sum += more;
                end += 1;
            }
            bursts.push(sum);
            sum -= servers;
        }
        bursts.sort_unstable();
        let place = (bursts.len() * SHARE).div_ceil(100).saturating_sub(1);
        let burst = bursts.get(place).copied().unwrap_or(0);
        u32::try_from(burst).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shadow::kit;
    use ebbtide_model::decision::Explanation;
    use ebbtide_model::{NoValidHost, ServerId};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use uuid::Uuid;

    fn at(seconds: u32) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000).plus(Seconds(seconds))
    }

    /// A request at a time for so many servers, which go to a host or are refused.
    fn decision(seconds: u32, servers: u32, host: Option<&str>) -> Decision {
        let outcome = match host {
            Some(host) => {
                DecisionOutcome::Placed((0..servers).map(|_| kit::placed(host, 0)).collect())
            }
            None => DecisionOutcome::NoValidHost(NoValidHost {
                reason: String::new(),
                placed_before: 0,
                dropped: Vec::new(),
                hosts: 1,
            }),
        };
        let mut decision = kit::decision(outcome, Explanation::default());
        decision.id = DecisionId(ebbtide_runtime::ids::new());
        decision.at = at(seconds);
        let ids = (0..servers).map(|n| ServerId(Uuid::from_u128(n.into())));
        decision.request.server_ids = ids.collect();
        decision
    }

    fn demand(decisions: &[Decision]) -> Demand {
        let mut demand = Demand::default();
        decisions.iter().for_each(|decision| demand.put(decision));
        demand
    }

    #[test]
    fn a_burst_is_what_comes_before_room_can_be_made() {
        let all = [
            decision(0, 1, Some("a")),
            decision(50, 2, Some("b")),
            decision(100, 4, None),
        ];
        let demand = demand(&all);
        let flavor = all[0].request.flavor.name.as_str();
        let within = |lead, hosts: Option<&str>| {
            let hosts = hosts.map(|host| BTreeSet::from([host.to_owned()]));
            demand.forecast(flavor, hosts.as_ref(), Seconds(lead))
        };
        assert_eq!(within(0, None), 4, "each request alone");
        assert_eq!(within(50, None), 4);
        assert_eq!(within(51, None), 6);
        assert_eq!(within(200, None), 7);
        assert_eq!(
            within(200, Some("a")),
            5,
            "what was refused counts everywhere"
        );
        assert_eq!(demand.forecast("another", None, Seconds(200)), 0);
    }

    #[test]
    fn requests_for_preemptible_servers_and_old_ones_do_not_count() {
        let mut preemptible = decision(10, 3, Some("a"));
        let key = ebbtide_model::flavor::PREEMPTIBLE.to_owned();
        let specs = &mut preemptible.request.flavor.extra_specs;
        specs.insert(key, "true".to_owned());
        let mut demand = demand(&[preemptible, decision(0, 1, Some("a"))]);
        assert_eq!(demand.len(), 1);
        demand.forget_old(at(HISTORY.0));
        assert_eq!(demand.len(), 1);
        demand.forget_old(at(HISTORY.0 + 1));
        assert_eq!(demand.len(), 0);
    }

    proptest! {
        #[test]
        fn the_forecast_is_what_a_look_at_every_burst_says(
            requests in vec((0_u32..300, 1_u32..5), 0..60),
            lead in 0_u32..120,
        ) {
            let all: Vec<Decision> = requests
                .iter()
                .map(|(seconds, servers)| decision(*seconds, *servers, Some("a")))
                .collect();
            let demand = demand(&all);
            let Some(flavor) = all.first().map(|d| d.request.flavor.name.clone()) else {
                prop_assert_eq!(demand.forecast("any", None, Seconds(lead)), 0);
                return Ok(());
            };
            let told = demand.forecast(&flavor, None, Seconds(lead));
            // In the order of the requests: of those at one time the first one counts all.
            let mut sorted: Vec<(Timestamp, DecisionId, u32)> = all
                .iter()
                .map(|d| (d.at, d.id, u32::try_from(d.request.server_ids.len()).unwrap()))
                .collect();
            sorted.sort();
            let bursts = (0..sorted.len()).map(|first| {
                let (began, ..) = sorted[first];
                let within = sorted[first..]
                    .iter()
                    .filter(|(at, ..)| *at == began || *at < began.plus(Seconds(lead)));
                within.map(|(.., servers)| servers).sum::<u32>()
            });
            let bursts: Vec<u32> = bursts.collect();
            let served = bursts.iter().filter(|burst| **burst <= told).count();
            prop_assert!(served * 100 >= bursts.len() * 95);
            let fewer = bursts.iter().filter(|burst| **burst < told).count();
            prop_assert!(fewer * 100 < bursts.len() * 95, "fewer would do");
        }
    }
}
