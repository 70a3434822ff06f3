//! Every bound of advice: what is enough, what is too much, and what a tenant can make a scheduler compute at most.

/// Fewer interruptions than this are no model. Ten leave the rate of the simplest one uncertain by a factor of two either way
/// (Poisson's 95 % of ten: 4.8 to 18.4).
pub const LEAST_INTERRUPTIONS: usize = 10;

/// Other tenants' lives are taken in by batches of at least so many …
pub const BATCH_LIVES: usize = 10;
/// … of at least so many projects …
pub const BATCH_PROJECTS: usize = 3;
/// … of which so many are not of the project that has most of them, so that even this one, who knows its own, is left with a sum.
pub const BATCH_BESIDES_LARGEST: usize = 5;

/// The latest lives of others that a model is fitted to, and as many of the asker's own (twice as many for who sees everything). A fit
/// takes time in proportion; the error of a share falls below 2 % by then.
pub const MOST_LIVES: usize = 750;
/// The latest lives that each model of the backtest is fitted to.
pub const MOST_LIVES_OF_BACKTEST: usize = 300;
/// Models of the backtest.
pub const BACKTESTS: usize = 6;

/// The longest job, hours: a week.
pub const LONGEST_JOB: f64 = 168.0;
/// The greatest age, hours: a year.
pub const GREATEST_AGE: f64 = 8760.0;
/// The longest checkpoint or restart, hours.
pub const LONGEST_COST: f64 = 24.0;
/// The most ages, in steps, that a plan looks at: its table has the square of it.
pub const MOST_AGES: f64 = 1500.0;
/// The most comparisons of a plan: steps of work, times ages, times the intervals that are possible at each. A tenth of a second or so.
pub const MOST_COMPARISONS: f64 = 2.1e7;
/// The grain of plans, hours: the finest that keeps the bounds is taken.
pub const STEPS: [f64; 12] = [
    1.0 / 60.0,
    2.0 / 60.0,
    3.0 / 60.0,
    5.0 / 60.0,
    10.0 / 60.0,
    15.0 / 60.0,
    0.5,
    1.0,
    2.0,
    6.0,
    24.0,
    168.0,
];

/// Into how many equal parts a job is divided that no grain fits.
pub const PARTS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Within how many hours an interruption may come.
pub const WITHIN: [f64; 3] = [1.0, 6.0, 24.0];
/// Intervals of confidence of figures that are shown: 95 %.
pub const CONFIDENCE: f64 = 1.96;
/// A backtest that is farther off than this many standard errors is not by chance (0.3 %; several are compared).
pub const SUSPICION: f64 = 3.0;
/// Rows of the calibration with fewer answers than this are not shown.
pub const LEAST_ANSWERS: usize = 10;
/// Points of a curve besides the first.
pub const CURVE: usize = 48;
