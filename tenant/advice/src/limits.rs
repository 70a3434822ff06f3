//! All bounds of advice: minimum data, and maximum computation that a tenant can cause.

/// Minimum number of interruptions for a model. Ten leave the rate of the simplest model uncertain
/// by a factor of two either way (Poisson's 95 % of ten: 4.8 to 18.4).
pub const LEAST_INTERRUPTIONS: usize = 10;

/// Minimum number of lives in a batch of other tenants' lives.
pub const BATCH_LIVES: usize = 10;
/// Minimum number of projects in a batch.
pub const BATCH_PROJECTS: usize = 3;
/// Minimum number of lives in a batch outside the project that has most of them. Even this project,
/// which knows its own lives, then learns only a sum.
pub const BATCH_BESIDES_LARGEST: usize = 5;

/// Maximum number of other tenants' lives that a model is fitted to, the latest ones, and of the
/// tenant's own (twice as many for callers that see everything). The duration of a fit is
/// proportional to the number; with this many the error of a share is below 2 %.
pub const MOST_LIVES: usize = 750;
/// Maximum number of lives that each model of the backtest is fitted to, the latest ones.
pub const MOST_LIVES_OF_BACKTEST: usize = 300;
/// Number of models of the backtest.
pub const BACKTESTS: usize = 6;

/// The longest job, hours: a week.
pub const LONGEST_JOB: f64 = 168.0;
/// The greatest age, hours: a year.
pub const GREATEST_AGE: f64 = 8760.0;
/// The longest checkpoint or restart, hours.
pub const LONGEST_COST: f64 = 24.0;
/// Maximum number of ages, in steps, in a plan: its table has the square of this size.
pub const MOST_AGES: f64 = 1500.0;
/// Maximum number of comparisons of a plan: steps of work, times ages, times the possible intervals
/// at each. They take about a tenth of a second.
pub const MOST_COMPARISONS: f64 = 2.1e7;
/// Possible steps of plans, hours: the planner uses the finest that keeps the bounds.
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

/// Possible numbers of equal parts of a job for which no step is suitable.
pub const PARTS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Forecast horizons, hours.
pub const WITHIN: [f64; 3] = [1.0, 6.0, 24.0];
/// Standard errors of the confidence intervals in answers: 95 %.
pub const CONFIDENCE: f64 = 1.96;
/// A backtest that deviates by more than this many standard errors is not explained by chance (0.3
/// %; several are compared).
pub const SUSPICION: f64 = 3.0;
/// Minimum number of forecasts in a calibration row; smaller rows are not shown.
pub const LEAST_ANSWERS: usize = 10;
/// Number of points of a curve besides the first.
pub const CURVE: usize = 48;
