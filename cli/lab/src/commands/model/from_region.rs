//! Lifetimes as the region has written them down, and those that go on.

use ebbtide_client::Region;
use ebbtide_client::pages;
use ebbtide_lifetime::Observation;
use ebbtide_lifetime::labelled_life::LabelledLife;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::globals::ProjectScope;
use ebbtide_shell::hours::Maximum;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// One life.
#[derive(Debug)]
pub(super) struct RegionLife {
    row: LabelledLife,
    /// Maximum lifetime of its flavor.
    pub(super) maximum: Maximum,
    reached_it: bool,
}

impl RegionLife {
    /// The observation for a distribution that ends at `maximum`. A server that was ended because
    /// of this limit received its notice one grace period earlier, so it counts as having lived for
    /// the whole maximum.
    pub(super) fn limited_to(mut self, maximum: Maximum) -> LabelledLife {
        if self.reached_it && self.maximum == maximum {
            self.row.observation.hours = maximum.0;
        }
        self.row
    }
}

/// All lives of preemptible servers, the earliest launch first.
pub(super) async fn rows(
    context: &mut Context,
    scope: &ProjectScope,
) -> Result<Vec<RegionLife>, CliError> {
    let mut region = context.region().await?;
    let project = scope.project(context);
    let mut rows = Vec::new();
    let flavors = limits(&mut region).await?;
    for server in pages::servers(&mut region, &project).await? {
        if server.preemptible && pages::runs(&server) {
            rows.extend(going_on(&server, &flavors, context.output.now()));
        }
    }
    let wanted = v1::ListLivesRequest {
        project_id: project,
        ..Default::default()
    };
    let lives = pages::lives(&mut region, wanted).await?;
    rows.extend(lives.iter().filter(|l| l.preemptible).filter_map(over));
    // The region says the latest first.
    rows.sort_by_key(|row| row.row.launched);
    for (number, row) in (1..).zip(&mut rows) {
        row.row.line = number;
    }
    if rows.is_empty() {
        context
            .output
            .say("the region knows of no preemptible server that has run (--all-projects: of any project)");
    }
    Ok(rows)
}

/// Seconds that servers of each flavor may live.
async fn limits(region: &mut Region) -> Result<BTreeMap<String, u32>, CliError> {
    let answer = region.admin.list_flavors(v1::ListFlavorsRequest {}).await?;
    let flavors = answer.into_inner().flavors.into_iter();
    Ok(flavors
        .map(|flavor| {
            let said = flavor.extra_specs.get("ebbtide:max_lifetime_seconds");
            (flavor.name, said.and_then(|s| s.parse().ok()).unwrap_or(0))
        })
        .collect())
}

/// A server that runs has lived at least until now.
fn going_on(
    server: &v1::Server,
    limits: &BTreeMap<String, u32>,
    now: OffsetDateTime,
) -> Option<RegionLife> {
    let launched = moment(&server.launched_at)?;
    let limit = limits.get(&server.flavor_name).copied().unwrap_or(0);
    let maximum = hours_of(limit);
    let hours = (now - launched).as_seconds_f64().max(0.0) / 3600.0;
    Some(RegionLife {
        row: LabelledLife {
            observation: Observation {
                hours: hours.min(maximum.0),
                ended: false,
            },
            launched: Some(launched),
            labels: labels([
                ("flavor", &server.flavor_name),
                ("zone", &server.availability_zone),
                ("host", &server.host),
                ("project", &server.project_id),
            ]),
            line: 0,
        },
        maximum,
        reached_it: false,
    })
}

fn over(life: &v1::Life) -> Option<RegionLife> {
    let launched = moment(&life.launched_at)?;
    let ended = moment(&life.ended_at)?;
    let hours = (ended - launched).as_seconds_f64().max(0.0) / 3600.0;
    Some(RegionLife {
        row: LabelledLife {
            observation: Observation {
                hours,
                // A server that was lost or deleted would have lived longer, so it is censored.
                ended: matches!(life.end.as_str(), "preempted" | "max-lifetime"),
            },
            launched: Some(launched),
            labels: labels([
                ("flavor", &life.flavor),
                ("zone", &life.zone),
                ("host", &life.host),
                ("project", &life.project_id),
            ]),
            line: 0,
        },
        maximum: hours_of(life.max_lifetime_seconds),
        reached_it: life.end == "max-lifetime",
    })
}

fn hours_of(limit: u32) -> Maximum {
    match limit {
        0 => Maximum(f64::INFINITY),
        seconds => Maximum(f64::from(seconds) / 3600.0),
    }
}

fn labels<const N: usize>(pairs: [(&str, &String); N]) -> BTreeMap<String, String> {
    let pairs = pairs.into_iter();
    pairs.map(|(k, v)| (k.to_owned(), v.clone())).collect()
}

/// The region writes times as RFC 3339.
fn moment(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}
