//! The reference: the cheapest victims over all hosts, found by looking at every host. Shares no
//! code with the engine.
//!
//! It keeps its own picture of the cloud and knows one cost, that of the default cost module: the
//! seconds that the instance has used of its started hour. A subset of the instances is skipped
//! only if it costs more than one that is already known to be sufficient, or cannot become
//! sufficient any more; so what it finds is the minimum.

use crate::cloud::{Amounts, CloudPlan, plus};

/// A billing period of the default cost module, in milliseconds.
const PERIOD_MILLIS: i64 = 3_600_000;

/// The value by which answers are compared: the cost of the victims in milliseconds of started
/// hours, then the number of victims. An answer without victims has the price `(0, 0)`.
pub type AnswerCost = (i64, usize);

#[derive(Debug, Clone, Copy)]
struct Member {
    launched_millis: i64,
    amounts: Amounts,
    id: u128,
    there: bool,
}

#[derive(Debug)]
struct MirrorHost {
    /// Free capacity without the preemptible instances.
    free_normal: Amounts,
    members: Vec<Member>,
}

/// The cloud as the reference sees it.
#[derive(Debug)]
pub struct Mirror {
    hosts: Vec<MirrorHost>,
}

/// What is wrong with an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerFault {
    /// A victim is not on the host, is no preemptible instance, or was named twice.
    NoSuchVictim,
    /// Without the victims there is still not enough room.
    NotEnough,
    /// One victim could have stayed.
    Superfluous,
    /// There is a cheaper set somewhere, or the answer says no host where there is one, or the
    /// other way round.
    NotTheCheapest {
        /// What the reference found; `None` if there is no sufficient set anywhere.
        cheapest: Option<AnswerCost>,
        /// What was answered.
        answered: Option<AnswerCost>,
    },
}

impl MirrorHost {
    fn free(&self) -> Amounts {
        let there = self.members.iter().filter(|m| m.there);
        there.fold(self.free_normal, |free, m| plus(free, m.amounts, -1))
    }
}

fn cost(member: &Member, now_millis: i64) -> i64 {
    (now_millis - member.launched_millis).rem_euclid(PERIOD_MILLIS)
}

fn enough(missing: Amounts) -> bool {
    missing.iter().all(|m| *m <= 0)
}

impl Mirror {
    #[must_use]
    pub fn of(plan: &CloudPlan) -> Self {
        let hosts = (0..plan.hosts)
            .map(|number| {
                let host = plan.host(number);
                let members = host.guests.iter().filter(|g| g.preemptible);
                MirrorHost {
                    free_normal: plus(host.capacity, host.used(false), -1),
                    members: members
                        .map(|guest| Member {
                            launched_millis: guest.launched_millis,
                            amounts: guest.size.amounts(),
                            id: guest.id,
                            there: true,
                        })
                        .collect(),
                }
            })
            .collect();
        Self { hosts }
    }

    /// The price of the cheapest answer over all hosts; `None` if no host can take the request.
    #[must_use]
    pub fn cheapest(&self, wanted: Amounts, now_millis: i64) -> Option<AnswerCost> {
        // A first, greedy look gives a price that is good enough to skip most subsets in the
        // second.
        let mut best = self
            .hosts
            .iter()
            .filter_map(|host| greedy(host, wanted, now_millis))
            .min()?;
        for host in &self.hosts {
            let missing = plus(wanted, host.free(), -1);
            let mut candidates: Vec<(i64, Amounts)> = host
                .members
                .iter()
                .filter(|m| m.there)
                .map(|m| (cost(m, now_millis), m.amounts))
                .filter(|(cost, _)| *cost <= best.0)
                .collect();
            candidates.sort_unstable();
            search(&candidates, missing, (0, 0), &mut best);
        }
        Some(best)
    }

    /// Holds an answer against everything that must be true of it. `answer` is the number of the
    /// host and the victims' identifiers; `None` for no valid host.
    ///
    /// # Errors
    /// The first thing that is not true.
    pub fn check(
        &self,
        wanted: Amounts,
        now_millis: i64,
        answer: Option<(u32, &[u128])>,
    ) -> Result<(), AnswerFault> {
        let answered = match answer {
            Some((number, victims)) => Some(self.price(wanted, now_millis, number, victims)?),
            None => None,
        };
        let cheapest = self.cheapest(wanted, now_millis);
        if cheapest == answered {
            Ok(())
        } else {
            Err(AnswerFault::NotTheCheapest { cheapest, answered })
        }
    }

    /// What an answer costs, if its victims are there, are enough, and none could have stayed.
    fn price(
        &self,
        wanted: Amounts,
        now_millis: i64,
        number: u32,
        victims: &[u128],
    ) -> Result<AnswerCost, AnswerFault> {
        let host = self
            .hosts
            .get(number as usize)
            .ok_or(AnswerFault::NoSuchVictim)?;
        let mut left = host.members.iter().filter(|m| m.there).collect::<Vec<_>>();
        let mut gone = Vec::with_capacity(victims.len());
        for victim in victims {
            let at = left.iter().position(|m| m.id == *victim);
            gone.push(left.swap_remove(at.ok_or(AnswerFault::NoSuchVictim)?));
        }
        let missing = gone
            .iter()
            .fold(plus(wanted, host.free(), -1), |missing, m| {
                plus(missing, m.amounts, -1)
            });
        if !enough(missing) {
            return Err(AnswerFault::NotEnough);
        }
        if gone.iter().any(|m| enough(plus(missing, m.amounts, 1))) {
            return Err(AnswerFault::Superfluous);
        }
        Ok((gone.iter().map(|m| cost(m, now_millis)).sum(), gone.len()))
    }

    /// Applies an answer: the victims leave, and the normal instance takes their place.
    pub fn apply(&mut self, wanted: Amounts, number: u32, victims: &[u128]) {
        if let Some(host) = self.hosts.get_mut(number as usize) {
            host.free_normal = plus(host.free_normal, wanted, -1);
            for member in &mut host.members {
                member.there &= !victims.contains(&member.id);
            }
        }
    }
}

/// A sufficient set of a host, not always the cheapest: the cheapest instances, until they are
/// enough.
fn greedy(host: &MirrorHost, wanted: Amounts, now_millis: i64) -> Option<AnswerCost> {
    let mut missing = plus(wanted, host.free(), -1);
    let mut members: Vec<_> = host
        .members
        .iter()
        .filter(|m| m.there)
        .map(|m| (cost(m, now_millis), m.amounts))
        .collect();
    members.sort_unstable();
    let mut price = (0, 0);
    for (cost, amounts) in members {
        if enough(missing) {
            break;
        }
        missing = plus(missing, amounts, -1);
        price = (price.0 + cost, price.1 + 1);
    }
    enough(missing).then_some(price)
}

/// Tries every subset of the candidates, cheapest first, that may be better than the best.
fn search(
    candidates: &[(i64, Amounts)],
    missing: Amounts,
    price: AnswerCost,
    best: &mut AnswerCost,
) {
    if enough(missing) {
        *best = price.min(*best);
        return;
    }
    let all = candidates
        .iter()
        .fold(missing, |left, (_, amounts)| plus(left, *amounts, -1));
    let Some(((cost, amounts), rest)) = candidates.split_first() else {
        return;
    };
    // Stop if all remaining candidates together are not enough, or if the next one is already too
    // expensive. The candidates are sorted by cost, so all later ones cost at least as much.
    let with = (price.0 + cost, price.1 + 1);
    if !enough(all) || with > *best {
        return;
    }
    search(rest, plus(missing, *amounts, -1), with, best);
    search(rest, missing, price, best);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members as (virtual CPUs, minutes of the started hour), on hosts that are full.
    fn mirror(hosts: &[&[(i64, i64)]]) -> Mirror {
        let hosts = hosts
            .iter()
            .enumerate()
            .map(|(number, members)| MirrorHost {
                free_normal: [members.iter().map(|(vcpus, _)| vcpus).sum(), 0, 0],
                members: members
                    .iter()
                    .enumerate()
                    .map(|(at, (vcpus, minutes))| Member {
                        launched_millis: -minutes * 60_000,
                        amounts: [*vcpus, 0, 0],
                        id: number as u128 * 100 + at as u128,
                        there: true,
                    })
                    .collect(),
            });
        Mirror {
            hosts: hosts.collect(),
        }
    }

    const MINUTE: i64 = 60_000;

    #[test]
    fn every_subset_of_every_host_is_a_candidate() {
        let cloud = mirror(&[&[(2, 30), (2, 20), (4, 55)], &[(2, 50), (2, 1), (1, 48)]]);
        assert_eq!(cloud.cheapest([4, 0, 0], 0), Some((50 * MINUTE, 2)));
        assert_eq!(cloud.cheapest([3, 0, 0], 0), Some((49 * MINUTE, 2)));
        assert_eq!(cloud.cheapest([8, 0, 0], 0), Some((105 * MINUTE, 3)));
        assert_eq!(cloud.cheapest([9, 0, 0], 0), None);
        assert_eq!(cloud.cheapest([0, 0, 0], 0), Some((0, 0)));
    }

    #[test]
    fn it_agrees_with_counting_all_subsets() {
        let mut seeded = crate::seeded::SeededNumbers::new(3, 0);
        for _ in 0..300 {
            let members: Vec<(i64, i64)> = (0..seeded.below(9))
                .map(|_| {
                    (
                        (seeded.below(4) + 1).cast_signed(),
                        seeded.below(60).cast_signed(),
                    )
                })
                .collect();
            let wanted = [seeded.below(8).cast_signed(), 0, 0];
            let counted = (0_u32..1 << members.len())
                .filter_map(|mask| {
                    let set = members
                        .iter()
                        .enumerate()
                        .filter(|(at, _)| mask >> at & 1 == 1);
                    let (vcpus, minutes, count) = set.fold((0, 0, 0), |sum, (_, (v, m))| {
                        (sum.0 + v, sum.1 + m, sum.2 + 1)
                    });
                    (vcpus >= wanted[0]).then_some((minutes * MINUTE, count))
                })
                .min();
            assert_eq!(
                mirror(&[&members]).cheapest(wanted, 0),
                counted,
                "{members:?} {wanted:?}"
            );
        }
    }

    #[test]
    fn wrong_answers_are_seen() {
        let cloud = mirror(&[&[(2, 30), (2, 20), (4, 55)], &[(2, 5), (2, 6)]]);
        let check = |answer: Option<(u32, &[u128])>| cloud.check([4, 0, 0], 0, answer);
        assert_eq!(check(Some((1, &[100, 101]))), Ok(()));
        assert_eq!(check(Some((1, &[100]))), Err(AnswerFault::NotEnough));
        assert_eq!(
            check(Some((1, &[100, 100]))),
            Err(AnswerFault::NoSuchVictim)
        );
        assert_eq!(check(Some((1, &[0]))), Err(AnswerFault::NoSuchVictim));
        assert_eq!(check(Some((0, &[0, 2]))), Err(AnswerFault::Superfluous));
        let dearer = AnswerFault::NotTheCheapest {
            cheapest: Some((11 * MINUTE, 2)),
            answered: Some((50 * MINUTE, 2)),
        };
        assert_eq!(check(Some((0, &[0, 1]))), Err(dearer));
        assert!(matches!(
            check(None),
            Err(AnswerFault::NotTheCheapest { answered: None, .. })
        ));
    }

    #[test]
    fn who_has_left_is_no_candidate_any_more() {
        let mut cloud = mirror(&[&[(2, 30), (2, 20)]]);
        cloud.apply([2, 0, 0], 0, &[1]);
        assert_eq!(cloud.cheapest([2, 0, 0], 0), Some((30 * MINUTE, 1)));
        cloud.apply([2, 0, 0], 0, &[0]);
        assert_eq!(cloud.cheapest([1, 0, 0], 0), None);
    }
}
