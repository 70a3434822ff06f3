//! Lives as a region would have seen them.

use ebbtide_advice::{FlavorModel, FlavorScope, LifePool, LifeRecord, Retention, Viewer};
use ebbtide_lifetime::Lifetime;
use ebbtide_lifetime::description::Description;
use ebbtide_model::{LifeEnd, Seconds, Timestamp};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

pub(crate) const HOUR_MS: i64 = 3_600_000;
/// When the tests' regions began. The beginning of a block.
pub(crate) const BEGIN: i64 = 1_770_000_000_000 / (1600 * HOUR_MS) * 1600 * HOUR_MS;
/// How long its lives are kept: blocks are 1,600 h.
pub(crate) const KEPT: Retention = Retention(Seconds(9600 * 3600));

pub(crate) fn at(hours: f64) -> Timestamp {
    Timestamp::from_millis(BEGIN + (hours * HOUR_MS as f64).round() as i64)
}

/// A life of `project` that began at an hour and was preempted after so many.
pub(crate) fn preempted(project: &str, launched: f64, hours: f64) -> LifeRecord {
    LifeRecord {
        project: project.to_owned(),
        launched: at(launched),
        ended: Some((at(launched + hours), LifeEnd::Preempted)),
        limit: f64::INFINITY,
    }
}

pub(crate) fn model(text: &str) -> Box<dyn Lifetime> {
    Description::parse(text).unwrap().model().unwrap()
}

/// Lives of a model, launched one after another over `span` hours, spread over `projects`; about a
/// share `stopped` is ended by its users, whenever they have done what they wanted: that has
/// nothing to do with how long the server would have lived. What ends after `span` goes on.
pub(crate) fn lives(
    model: &dyn Lifetime,
    count: u32,
    span: f64,
    projects: u32,
    stopped: f64,
    seed: u64,
) -> Vec<LifeRecord> {
    let mut chance = Pcg64::seed_from_u64(seed);
    (0..count)
        .map(|n| {
            let launched = span * f64::from(n) / f64::from(count);
            let whole = model.sample(&mut chance);
            // The users' work takes 20 h on average if half of the servers are to be stopped, and
            // for ever if none is.
            let work = -(1.0 - chance.random::<f64>()).ln() * 20.0 * (1.0 - stopped) / stopped;
            let (hours, end) = if work < whole {
                (work, LifeEnd::Deleted)
            } else if whole >= model.maximum() {
                (model.maximum(), LifeEnd::MaxLifetime)
            } else {
                (whole, LifeEnd::Preempted)
            };
            LifeRecord {
                project: format!("project-{}", n % projects),
                launched: at(launched),
                ended: (launched + hours <= span).then(|| (at(launched + hours), end)),
                limit: model.maximum(),
            }
        })
        .collect()
}

pub(crate) fn tenant(project: &str) -> Viewer {
    Viewer::Projects(vec![project.to_owned()])
}

pub(crate) fn knowledge(
    lives: &[LifeRecord],
    asker: &Viewer,
    now: f64,
    maximum: f64,
) -> FlavorModel {
    FlavorModel::of(
        LifePool::of(lives, asker, at(now), maximum, KEPT),
        FlavorScope::Flavor,
    )
    .unwrap()
}
