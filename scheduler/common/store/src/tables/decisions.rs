//! Decisions, and which servers they were about.

use super::Table;
use crate::StoreError;
use crate::row::{EncodedRow, Encoder, Row, finite, key, millis, text};
use ebbtide_model::{Decision, DecisionOutcome, Victim};

pub(crate) static DECISIONS: Table = Table {
    index: 6,
    name: "decisions",
    key: &["id"],
    columns: &[
        "id",
        "project_id",
        "request_id",
        "outcome",
        "created_at",
        "record",
    ],
};

pub(crate) static DECISION_SERVERS: Table = Table {
    index: 7,
    name: "decision_servers",
    key: &["server_id", "decision_id"],
    columns: &["server_id", "decision_id", "created_at"],
};

/// The word for a decision that found room.
const PLACED: &str = "placed";
/// The word for one that did not.
pub(crate) const NO_VALID_HOST: &str = "no_valid_host";
/// Under how many of its servers' identifiers the decision about a refused request is found.
const LINKS_OF_REFUSED: usize = 32;

impl Encoder {
    pub(crate) fn decision(&self, decision: &Decision) -> EncodedRow {
        let id = decision.id.to_string();
        check_numbers(&id, decision)?;
        let columns = vec![
            text(&id),
            key(&DECISIONS, &id, &decision.request.project_id)?,
            key(&DECISIONS, &id, &decision.trace.request_id)?,
            text(match decision.outcome {
                DecisionOutcome::Placed(_) => PLACED,
                DecisionOutcome::NoValidHost(_) => NO_VALID_HOST,
            }),
            millis(decision.at),
        ];
        self.with_record(&DECISIONS, &id, columns, decision)
    }

    /// One row for each server that the decision was about, with the key of the row. Of a refused
    /// request the first ones suffice to find it: its servers are not there, and a thousand rows
    /// were most of what a request costs that nothing comes of.
    pub(crate) fn decision_servers(decision: &Decision) -> impl Iterator<Item = (String, Row)> {
        let id = decision.id.to_string();
        let at = decision.at;
        let links = match decision.outcome {
            DecisionOutcome::Placed(_) => usize::MAX,
            DecisionOutcome::NoValidHost(_) => LINKS_OF_REFUSED,
        };
        let servers = decision.request.server_ids.iter().take(links);
        servers.map(move |server| {
            let server = server.to_string();
            let row = Row {
                bytes: 128,
                values: vec![text(&server), text(&id), millis(at)],
            };
            (format!("{server}{id}"), row)
        })
    }
}

fn check_numbers(id: &str, decision: &Decision) -> Result<(), StoreError> {
    let check = |what: &str, number: f64| finite(&DECISIONS, id, what, number);
    let check_victim = |victim: &Victim| {
        check("a victim's cost", victim.cost)?;
        check("a victim's age", victim.age_seconds)
    };
    for (_, victim) in decision.victims() {
        check_victim(victim)?;
    }
    check("the gap", decision.explanation.gap)?;
    check("the surcharge", decision.explanation.surcharge)?;
    for instance in &decision.explanation.instances {
        for host in &instance.ranking {
            check("a host's weight", host.weight)?;
            check("a host's eviction cost", host.eviction_cost.unwrap_or(0.0))?;
            host.victims.iter().try_for_each(check_victim)?;
            for weight in &host.weights {
                check("a raw weight", weight.raw)?;
                check("a normalised weight", weight.normalised)?;
                check("a multiplier", weight.multiplier)?;
            }
        }
    }
    Ok(())
}
