//! Expected cost under a model of availability, by dynamic programming.
//!
//! Time runs in steps of h seconds back from the deadline, slack on a grid of one changeover, the
//! market over classes of ages of periods with and without preemptible servers. V(n, held, market,
//! slack) is the least expected cost from n steps before the deadline on, over the safe decisions
//! of [`crate::SafeDecisions`]. Only the expectation E over the next market is stored: a decision
//! compares what it costs until the next step plus E of where it leads.

use crate::availability::{AvailabilityModel, CLASS_STARTS, CLASSES};
use crate::{DeadlineJob, Decision};

/// Steps until the deadline, at most.
const STEPS: u64 = 384;
/// Points of the grid of slack, at most.
const POINTS: u64 = 256;

/// Markets: classes of ages, without and with preemptible servers.
const MARKETS: usize = 2 * CLASSES;
/// Rows of the table for one step: what is held times the market.
const ROWS: usize = 3 * MARKETS;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanServer {
    Nothing = 0,
    Spot = 1,
    OnDemand = 2,
}

/// The sizes of the plan.
#[derive(Debug, Clone, Copy)]
struct Grid {
    /// Seconds of a step.
    step: f32,
    steps: usize,
    /// Seconds between two points of the slack; the changeover, rounded up where the grid is
    /// coarse.
    gap: f32,
    points: usize,
    changeover: f32,
    spot: f32,
    on_demand: f32,
}

/// The table of expectations.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    grid: Grid,
    /// E, by steps before the deadline, what is held, market and slack.
    expected: Vec<f32>,
}

impl Plan {
    /// Solves for a job under a model, for all slack up to `most_slack` seconds and all times up to
    /// `horizon` seconds before the deadline.
    pub(crate) fn solve(
        job: &DeadlineJob,
        model: &AvailabilityModel,
        horizon: u64,
        most_slack: u64,
    ) -> Self {
        let terms = job.terms();
        let step = terms.poll.max(horizon.div_ceil(STEPS)).max(1);
        let gap = terms.changeover.max(most_slack.div_ceil(POINTS)).max(1);
        let grid = Grid {
            step: step as f32,
            steps: horizon.div_ceil(step) as usize + 1,
            gap: gap as f32,
            points: (most_slack / gap) as usize + 2,
            changeover: gap as f32,
            spot: terms.prices.spot.micros() as f32 / 3.6e9,
            on_demand: terms.prices.on_demand.micros() as f32 / 3.6e9,
        };
        let moves = Moves::of(model, step);
        let width = ROWS * grid.points;
        let mut expected = vec![0.0; (grid.steps + 1) * width];
        let mut values = vec![0.0; width];
        for n in 1..=grid.steps {
            let (before, this) = expected.split_at_mut(n * width);
            let before = &before[(n - 1) * width..];
            grid.values(n, before, &mut values);
            moves.expect(&grid, &values, &mut this[..width]);
        }
        Self { grid, expected }
    }

    /// The decision of least expected cost, `left` seconds before the deadline.
    pub(crate) fn best(
        &self,
        left: f32,
        slack: f32,
        have: PlanServer,
        market: (bool, usize),
    ) -> Decision {
        let n = ((left / self.grid.step).round() as usize).clamp(1, self.grid.steps);
        let width = ROWS * self.grid.points;
        let before = &self.expected[(n - 1) * width..n * width];
        self.grid.options(left, before, slack, have, market).0
    }
}

fn row(have: PlanServer, market: usize) -> usize {
    have as usize * MARKETS + market
}

fn market_of(available: bool, class: usize) -> usize {
    usize::from(available) * CLASSES + class
}

impl Grid {
    fn at(&self, before: &[f32], have: PlanServer, market: usize, slack: f32) -> f32 {
        let start = row(have, market) * self.points;
        let row = &before[start..start + self.points];
        let place = (slack / self.gap).clamp(0.0, (self.points - 1) as f32);
        let low = (place as usize).min(self.points - 2);
        let part = place - low as f32;
        row[low] * (1.0 - part) + row[low + 1] * part
    }

    /// Best decision and its expected cost with `remaining` seconds until the deadline.
    fn options(
        &self,
        remaining: f32,
        before: &[f32],
        slack: f32,
        have: PlanServer,
        (available, class): (bool, usize),
    ) -> (Decision, f32) {
        let market = market_of(available, class);
        // Work left after the changeover is paid with slack.
        let run = |price: f32, have: PlanServer, slack: f32| {
            let until = (remaining - slack).clamp(0.0, self.step);
            price * until + self.at(before, have, market, slack)
        };
        let d = self.changeover;
        let own = if have == PlanServer::OnDemand { 0.0 } else { d };
        let mut best = (
            Decision::OnDemand,
            run(self.on_demand, PlanServer::OnDemand, slack - own),
        );
        let own = if have == PlanServer::Spot { 0.0 } else { d };
        if available && slack - own >= d {
            let cost = run(self.spot, PlanServer::Spot, slack - own);
            if cost < best.1 {
                best = (Decision::Spot, cost);
            }
        }
        if slack - self.step >= d {
            let cost = self.at(before, PlanServer::Nothing, market, slack - self.step);
            if cost < best.1 {
                best = (Decision::Wait, cost);
            }
        }
        best
    }

    /// Expected cost of the best decision at every point, n steps before the deadline: what
    /// [`Self::options`] says at the points, for a whole row at once.
    fn values(&self, n: usize, before: &[f32], values: &mut [f32]) {
        let remaining = n as f32 * self.step;
        let slack = |point: usize| point as f32 * self.gap;
        let pay = |price: f32| -> Vec<f32> {
            let until = |point| (remaining - slack(point)).clamp(0.0, self.step);
            (0..self.points).map(|point| price * until(point)).collect()
        };
        let (pay_spot, pay_on_demand) = (pay(self.spot), pay(self.on_demand));
        // Waiting moves every point by the same part of a gap.
        let shift = self.step / self.gap;
        let whole = shift.ceil() as usize;
        let part = whole as f32 - shift;
        let over = ((remaining / self.gap).ceil() as usize).min(self.points);
        for market in 0..MARKETS {
            let of = |have: PlanServer| {
                let start = row(have, market) * self.points;
                &before[start..start + self.points]
            };
            let sum = |pay: &[f32], expected: &[f32]| -> Vec<f32> {
                pay.iter().zip(expected).map(|(a, b)| a + b).collect()
            };
            let on_demand = sum(&pay_on_demand, of(PlanServer::OnDemand));
            let mut on_spot = sum(&pay_spot, of(PlanServer::Spot));
            // One changeover must be left after the start of a preemptible server.
            on_spot[0] = f32::INFINITY;
            if market < CLASSES {
                on_spot.fill(f32::INFINITY);
            }
            let mut waiting = vec![f32::INFINITY; self.points];
            let idle = of(PlanServer::Nothing);
            let waited = waiting
                .iter_mut()
                .skip(whole + 1)
                .zip(idle.windows(2).skip(1));
            for (waiting, pair) in waited {
                *waiting = pair[0] * (1.0 - part) + pair[1] * part;
            }
            // From p = 1 on: the point before is where a changeover leads.
            let late = self.on_demand * self.gap + on_demand[0];
            let start_on_demand = once_before(late, &on_demand);
            let start_spot = once_before(f32::INFINITY, &on_spot);
            for (have, paid, spot) in [
                (PlanServer::Nothing, &start_on_demand, &start_spot),
                (PlanServer::Spot, &start_on_demand, &on_spot),
                (PlanServer::OnDemand, &on_demand, &start_spot),
            ] {
                let start = row(have, market) * self.points;
                let target = &mut values[start..start + self.points];
                for (((target, paid), spot), waiting) in
                    target.iter_mut().zip(paid).zip(spot).zip(&waiting)
                {
                    *target = paid.min(*spot).min(*waiting);
                }
                target[over..].fill(0.0);
            }
        }
    }
}

/// The row moved up by one point.
fn once_before(first: f32, row: &[f32]) -> Vec<f32> {
    let rest = row.iter().take(row.len() - 1).copied();
    std::iter::once(first).chain(rest).collect()
}

/// Chances of a step, by market: that the period ends, and that it gets into the next class of
/// ages.
struct Moves {
    ends: [f32; MARKETS],
    ages: [f32; MARKETS],
}

impl Moves {
    fn of(model: &AvailabilityModel, step: u64) -> Self {
        let mut moves = Self {
            ends: [0.0; MARKETS],
            ages: [0.0; MARKETS],
        };
        for available in [false, true] {
            for class in 0..CLASSES {
                let market = market_of(available, class);
                let ends = 1.0 - (-model.rate(available, class) * step as f64).exp();
                moves.ends[market] = ends as f32;
                if class + 1 < CLASSES {
                    let width = CLASS_STARTS[class + 1] - CLASS_STARTS[class];
                    let ages = (step as f64 / width as f64).min(1.0) * (1.0 - ends);
                    moves.ages[market] = ages as f32;
                }
            }
        }
        moves
    }

    fn expect(&self, grid: &Grid, values: &[f32], expected: &mut [f32]) {
        let points = grid.points;
        let part = |have: PlanServer, market: usize| {
            let start = row(have, market) * points;
            &values[start..start + points]
        };
        for have in [PlanServer::Nothing, PlanServer::Spot, PlanServer::OnDemand] {
            for market in 0..MARKETS {
                let available = market >= CLASSES;
                if have == PlanServer::Spot && !available {
                    continue;
                }
                let after = market_of(!available, 0);
                // A preemptible server is lost when its period ends.
                let ended = match have {
                    PlanServer::Spot => part(PlanServer::Nothing, after),
                    other => part(other, after),
                };
                let stays = part(have, market);
                let older = if (market + 1) % CLASSES == 0 {
                    stays
                } else {
                    part(have, market + 1)
                };
                let (e, a) = (self.ends[market], self.ages[market]);
                let start = row(have, market) * points;
                let target = &mut expected[start..start + points];
                for (i, target) in target.iter_mut().enumerate() {
                    *target = e * ended[i] + a * older[i] + (1.0 - e - a) * stays[i];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{History, HourPrices, JobTerms};
    use ebbtide_model::Money;

    #[test]
    fn rows_are_what_single_points_say() {
        let terms = JobTerms {
            work: 20 * 3_600,
            deadline: 26 * 3_600,
            changeover: 720,
            poll: 600,
            loss_lag: 0,
            prices: HourPrices {
                spot: Money::from_micros(920_000),
                on_demand: Money::from_micros(3_060_000),
            },
        };
        let job = DeadlineJob::new(terms).unwrap();
        let looks = (0..2_000).map(|n| (n * 600, n % 37 < 20 || n % 5 == 0));
        let model = AvailabilityModel::new(&History::new(looks));
        let plan = Plan::solve(&job, &model, 26 * 3_600, 6 * 3_600);
        let grid = plan.grid;
        let width = ROWS * grid.points;
        let mut values = vec![0.0; width];
        for n in [1, 2, 7, 40, grid.steps] {
            let before = &plan.expected[(n - 1) * width..n * width];
            grid.values(n, before, &mut values);
            let remaining = n as f32 * grid.step;
            for have in [PlanServer::Nothing, PlanServer::Spot, PlanServer::OnDemand] {
                for market in 0..MARKETS {
                    let state = (market >= CLASSES, market % CLASSES);
                    if have == PlanServer::Spot && !state.0 {
                        continue;
                    }
                    for point in 1..grid.points {
                        let slack = point as f32 * grid.gap;
                        if slack >= remaining {
                            continue;
                        }
                        let (_, cost) = grid.options(remaining, before, slack, have, state);
                        let value = values[row(have, market) * grid.points + point];
                        let difference = (value - cost).abs();
                        assert!(
                            difference < 1e-3,
                            "{n} {have:?} {market} {point}: {value}, {cost}"
                        );
                    }
                }
            }
        }
    }
}
