//! The omniscient optimum: the least cost of a job when the whole market is known beforehand.
//!
//! By dynamic programming over the steps of the market. The state is what is held and the slack
//! used so far: a step of waiting uses the step, a new server uses its changeover, progress uses
//! none. After T seconds with u of slack used, T − u seconds of work are done; the job is done at
//! the moment u + work, in time if u is at most deadline − work. A server that is let go or lost
//! before its changeover is over is booked with the whole changeover. That is too much, but the
//! optimum has no such server: waiting for that time would cost nothing and use the same slack.

use crate::{DeadlineError, DeadlineJob, JobCost};

/// The most cells of one step that are kept.
const MOST_CELLS: u64 = 4_000_000;
/// Above every cost; far enough from the limit to add to it.
const NEVER: u64 = u64::MAX / 4;

/// The least cost on a market with steps of so many seconds.
///
/// # Errors
/// [`DeadlineError::TooShort`] if the market ends before the deadline, [`DeadlineError::TooLarge`]
/// if the times have so small a common divisor that the table would be too large.
pub fn optimum(job: &DeadlineJob, market: &[bool], step: u64) -> Result<JobCost, DeadlineError> {
    let terms = job.terms();
    let seconds = (market.len() as u64).saturating_mul(step);
    if seconds < terms.deadline || step == 0 {
        return Err(DeadlineError::TooShort {
            series: "market".to_owned(),
            seconds,
            deadline: terms.deadline,
        });
    }
    let unit = divisor(step, terms.changeover);
    let slack = terms.deadline - terms.work;
    let cells = slack / unit + 1;
    if cells > MOST_CELLS {
        return Err(DeadlineError::TooLarge {
            cells,
            allowed: MOST_CELLS,
        });
    }
    let mut table = Table {
        unit,
        idle: usize::try_from(step / unit).unwrap_or(usize::MAX),
        fresh: usize::try_from(terms.changeover / unit).unwrap_or(usize::MAX),
        work: terms.work,
        step,
        best: NEVER,
        costs: [(); 3].map(|()| vec![NEVER; cells as usize]),
        next: [(); 3].map(|()| vec![NEVER; cells as usize]),
    };
    table.costs[0][0] = 0;
    let prices = terms.prices;
    let mut now = 0;
    for &available in market {
        if now >= terms.deadline {
            break;
        }
        table.pass(
            now,
            available,
            prices.spot.micros(),
            prices.on_demand.micros(),
        );
        now += step;
    }
    Ok(JobCost::from_raw(table.best))
}

struct Table {
    /// Seconds of a cell.
    unit: u64,
    /// Cells that a step of waiting uses.
    idle: usize,
    /// Cells that a changeover uses.
    fresh: usize,
    work: u64,
    step: u64,
    /// Least cost of the ends seen so far.
    best: u64,
    /// Least cost by what is held (nothing, a preemptible server, an on-demand server) and slack
    /// used.
    costs: [Vec<u64>; 3],
    next: [Vec<u64>; 3],
}

impl Table {
    fn pass(&mut self, now: u64, available: bool, spot: u64, on_demand: u64) {
        let cells = self.next[0].len();
        for row in &mut self.next {
            row.fill(NEVER);
        }
        let [nothing, on_spot, paid] = &self.costs;
        let [next_nothing, next_spot, next_paid] = &mut self.next;
        let waited = next_nothing.iter_mut().skip(self.idle);
        for (next, ((nothing, spot), paid)) in waited.zip(nothing.iter().zip(on_spot).zip(paid)) {
            *next = *nothing.min(spot).min(paid);
        }
        stay_or_start(
            next_paid,
            paid,
            nothing,
            on_spot,
            self.fresh,
            self.step * on_demand,
        );
        if available {
            stay_or_start(
                next_spot,
                on_spot,
                nothing,
                paid,
                self.fresh,
                self.step * spot,
            );
        }
        // Cells whose work ends in this step: the rest of the step is not paid.
        let end = now + self.step;
        if end >= self.work {
            let first = (now + 1).saturating_sub(self.work).div_ceil(self.unit);
            let last = ((end - self.work) / self.unit).min(cells as u64 - 1);
            for cell in first..=last {
                let spare = end - self.work - cell * self.unit;
                let cell = cell as usize;
                for (row, price) in [(&mut *next_spot, spot), (&mut *next_paid, on_demand)] {
                    if row[cell] < NEVER {
                        self.best = self.best.min(row[cell] - spare * price);
                        row[cell] = NEVER;
                    }
                }
            }
        }
        std::mem::swap(&mut self.costs, &mut self.next);
    }
}

/// A step on a server: kept, or started from one of two other states.
fn stay_or_start(
    next: &mut [u64],
    own: &[u64],
    one: &[u64],
    other: &[u64],
    fresh: usize,
    cost: u64,
) {
    for (next, own) in next.iter_mut().zip(own) {
        *next = (own + cost).min(NEVER);
    }
    let started = next.iter_mut().skip(fresh);
    for (next, (one, other)) in started.zip(one.iter().zip(other)) {
        *next = (*next).min(one.min(other) + cost);
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
