//! When a server ran, as Nova's rows tell it, and which past lives follow. Pure.
//!
//! A life lasts from a start to the next stop. Nova shows a victim as stopped or deleted like any
//! other server; that its end was a preemption is known from the ledger alone.

use crate::preemption::{Preemption, VictimState};
use ebbtide_model::message::EvacuationEnd;
use ebbtide_model::{LifeEnd, Money, PastLife, Seconds, ServerId, Timestamp};
use ebbtide_nova_cloud::preemptible_properties;
use ebbtide_nova_db::{PowerChange, ServerHistory};

/// A server that stopped this much before the plan of its evacuation did not run any more when it
/// was chosen. Less is the difference of clocks: Nova's rows have whole seconds, of the clock of
/// nova-api.
const CLOCKS_DIFFER: Seconds = Seconds(5);

/// An uninterrupted time in which a server ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RunPeriod {
    pub(super) began: Timestamp,
    /// `None`: it runs.
    pub(super) ended: Option<(Timestamp, LifeEnd)>,
}

/// The end of a server by Ebbtide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Eviction {
    pub(super) server: ServerId,
    project_id: String,
    flavor: String,
    host: String,
    /// Nova's time of its launch when it was chosen.
    launched_at: Option<Timestamp>,
    planned_at: Timestamp,
    at: Timestamp,
    cause: LifeEnd,
}

fn moment(micros: i64) -> Timestamp {
    Timestamp::from_millis(micros.div_euclid(1000))
}

/// The times in which a server ran since Nova last wrote its launch, in order. Only the last one
/// may go on.
pub(super) fn run_periods(history: &ServerHistory) -> Vec<RunPeriod> {
    let Some(launched) = history.launched_at else {
        return Vec::new();
    };
    let mut run_periods = Vec::new();
    let mut runs_since = Some(launched);
    let mut end = |runs_since: &mut Option<i64>, at: i64, end: LifeEnd| {
        if let Some(began) = runs_since.take() {
            run_periods.push(RunPeriod {
                began: moment(began),
                ended: Some((moment(at.max(began)), end)),
            });
        }
    };
    let later = |(at, _): &&(i64, PowerChange)| *at >= launched;
    for (at, change) in history.changes.iter().filter(later) {
        match change {
            PowerChange::Starts => runs_since = runs_since.or(Some(*at)),
            PowerChange::Stops => end(&mut runs_since, *at, LifeEnd::Stopped),
            PowerChange::Deletes => end(&mut runs_since, *at, LifeEnd::Deleted),
        }
    }
    match (runs_since, history.gone_at) {
        (_, Some(at)) => end(&mut runs_since, at, LifeEnd::Deleted),
        (Some(began), None) => run_periods.push(RunPeriod {
            began: moment(began),
            ended: None,
        }),
        (None, None) => {}
    }
    run_periods
}

/// The victims of a record that it has ended. One that was moved lives on.
pub(super) fn evictions(record: &Preemption) -> impl Iterator<Item = Eviction> + '_ {
    record.victims.iter().filter_map(|victim| {
        let VictimState::Evacuated { how, at, .. } = victim.state else {
            return None;
        };
        (how != EvacuationEnd::Migrated).then(|| Eviction {
            server: victim.server,
            project_id: victim.had.project_id.clone(),
            flavor: victim.flavor.clone(),
            host: victim.host.clone(),
            launched_at: victim.launched_at,
            planned_at: record.planned_at,
            at,
            cause: record.cause.into(),
        })
    })
}

/// The life that an eviction ended; `None` if the server did not run when it was chosen, or is not
/// known to have run at all. Without `history`, because the operator has archived the server's
/// rows, the ledger alone tells it.
pub(super) fn life_of_victim(
    eviction: &Eviction,
    history: Option<&ServerHistory>,
) -> Option<PastLife> {
    let run_periods = history.map(run_periods).unwrap_or_default();
    let period = run_periods
        .iter()
        .rfind(|period| period.began <= eviction.at);
    let (began, ended) = match period {
        Some(period) => match period.ended {
            Some((ended, _)) if ended < eviction.planned_at.minus(CLOCKS_DIFFER) => return None,
            // Deleted by its owner after the notice, or stopped by the agent a moment before it
            // told so.
            Some((ended, _)) => (period.began, ended.min(eviction.at)),
            None => (period.began, eviction.at),
        },
        None => (eviction.launched_at?, eviction.at),
    };
    let flavor = history.and_then(|history| history.flavor.as_ref());
    let properties = flavor.and_then(|flavor| preemptible_properties(&flavor.current));
    let text = |text: Option<&String>| text.cloned().unwrap_or_default();
    Some(PastLife {
        server_id: eviction.server,
        starts: number(began),
        name: text(history.and_then(|history| history.display_name.as_ref())),
        project_id: eviction.project_id.clone(),
        flavor: eviction.flavor.clone(),
        preemptible: true,
        price_per_hour: properties
            .as_ref()
            .map_or_else(Money::default, |properties| properties.price_per_hour),
        max_lifetime: properties.and_then(|properties| properties.max_lifetime),
        host: eviction.host.clone(),
        zone: text(history.and_then(|history| history.availability_zone.as_ref())),
        launched_at: began,
        ended_at: ended.max(began),
        end: eviction.cause,
    })
}

/// The past lives of a preemptible server as Nova shows them: as if its owner had ended each.
pub(super) fn lives_of(history: &ServerHistory) -> Vec<PastLife> {
    let flavor = history.flavor.as_ref().map(|flavor| &flavor.current);
    let properties = flavor.and_then(preemptible_properties);
    let (Some(flavor), Some(properties)) = (flavor, properties) else {
        return Vec::new();
    };
    let Ok(server) = history.uuid.parse::<ServerId>() else {
        return Vec::new();
    };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let ended = |period: RunPeriod| {
        let (ended_at, end) = period.ended?;
        Some(PastLife {
            server_id: server,
            starts: number(period.began),
            name: text(&history.display_name),
            project_id: text(&history.project_id),
            flavor: flavor.name.clone(),
            preemptible: true,
            price_per_hour: properties.price_per_hour,
            max_lifetime: properties.max_lifetime,
            host: text(&history.host),
            zone: text(&history.availability_zone),
            launched_at: period.began,
            ended_at,
            end,
        })
    };
    run_periods(history).into_iter().filter_map(ended).collect()
}

/// The number of a life: the second in which it began, which every scheduler finds in Nova's rows.
fn number(began: Timestamp) -> u32 {
    u32::try_from(began.as_millis() / 1000).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "run_periods_tests.rs"]
mod tests;
