//! From records to rows: which columns a record fills, and what no row may hold.

use crate::StoreError;
use crate::schema::{
    AGGREGATES, BUDGETS, DECISIONS, EVACUATIONS, FLAVORS, GROUPS, HOSTS, LIVES, MAX_KEY_CHARS,
    MAX_SCOPE_CHARS, OUTBOX, PRICES, SERVERS, Table,
};
use ebbtide_model::record::OutboxMessage;
use ebbtide_model::{
    Aggregate, BudgetScope, Decision, DecisionOutcome, DisruptionBudget, Evacuation, Flavor, Host,
    PastLife, PricePoint, Server, ServerGroup, Timestamp, Victim,
};
use sea_orm::Value;
use serde::Serialize;

/// One row: the values of [`Table::columns`], in that order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) values: Vec<Value>,
    /// Roughly how many bytes it adds to a statement.
    pub(crate) bytes: usize,
}

/// Makes the rows of one kind of database server.
pub(crate) struct Encoder {
    /// Largest record or message, in bytes.
    pub(crate) max_record_bytes: usize,
}

type Encoded = Result<Row, StoreError>;

/// Under how many of its servers' identifiers the decision about a refused request is found.
const LINKS_OF_REFUSED: usize = 32;

impl Encoder {
    pub(crate) fn host(&self, host: &Host) -> Encoded {
        let columns = vec![
            key(&HOSTS, &host.name, &host.name)?,
            millis(host.created_at),
        ];
        self.with_record(&HOSTS, &host.name, columns, host)
    }

    pub(crate) fn aggregate(&self, aggregate: &Aggregate) -> Encoded {
        let id = aggregate.id.to_string();
        self.with_record(&AGGREGATES, &id, vec![text(&id)], aggregate)
    }

    pub(crate) fn flavor(&self, flavor: &Flavor) -> Encoded {
        let id = flavor.id.to_string();
        self.with_record(&FLAVORS, &id, vec![text(&id)], flavor)
    }

    pub(crate) fn group(&self, group: &ServerGroup) -> Encoded {
        let id = group.id.to_string();
        self.with_record(&GROUPS, &id, vec![text(&id)], group)
    }

    pub(crate) fn budget(&self, budget: &DisruptionBudget) -> Encoded {
        let scope = scope(&budget.scope);
        check(&BUDGETS, &scope, &scope, MAX_SCOPE_CHARS)?;
        self.with_record(&BUDGETS, &scope, vec![text(&scope)], budget)
    }

    pub(crate) fn server(&self, server: &Server) -> Encoded {
        let id = server.id.to_string();
        let gone_at = server
            .status
            .is_gone()
            .then(|| server.ended_at.unwrap_or(server.created_at));
        let host = match &server.host {
            Some(host) => key(&SERVERS, &id, host)?,
            None => Value::String(None),
        };
        let columns = vec![
            text(&id),
            key(&SERVERS, &id, &server.project_id)?,
            key(&SERVERS, &id, &server.name)?,
            host,
            text(server.status.as_str()),
            millis(server.created_at),
            Value::BigInt(gone_at.map(Timestamp::as_millis)),
        ];
        self.with_record(&SERVERS, &id, columns, server)
    }

    pub(crate) fn evacuation(&self, evacuation: &Evacuation) -> Encoded {
        let id = evacuation.id.to_string();
        finite(&EVACUATIONS, &id, "cost", evacuation.cost)?;
        let final_at = evacuation
            .state
            .is_final()
            .then(|| evacuation.ended_at.unwrap_or(evacuation.claimed_at));
        let columns = vec![
            text(&id),
            text(&evacuation.victim_id.to_string()),
            key(&EVACUATIONS, &id, &evacuation.victim_project_id)?,
            // The column takes no NULL.
            text(
                &evacuation
                    .preemptor_id
                    .map(|id| id.to_string())
                    .unwrap_or_default(),
            ),
            key(&EVACUATIONS, &id, &evacuation.host)?,
            text(evacuation.state.as_str()),
            millis(evacuation.claimed_at),
            Value::BigInt(final_at.map(Timestamp::as_millis)),
        ];
        self.with_record(&EVACUATIONS, &id, columns, evacuation)
    }

    pub(crate) fn decision(&self, decision: &Decision) -> Encoded {
        let id = decision.id.to_string();
        check_numbers(&id, decision)?;
        let columns = vec![
            text(&id),
            key(&DECISIONS, &id, &decision.request.project_id)?,
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

    pub(crate) fn price(&self, point: &PricePoint) -> Encoded {
        let id = point.key();
        let columns = vec![
            text(&id),
            text(&point.flavor_id.to_string()),
            key(&PRICES, &id, &point.flavor)?,
            millis(point.at),
        ];
        self.with_record(&PRICES, &id, columns, point)
    }

    pub(crate) fn life(&self, life: &PastLife) -> Encoded {
        let id = life.key();
        let columns = vec![
            text(&id),
            key(&LIVES, &id, &life.project_id)?,
            key(&LIVES, &id, &life.flavor)?,
            millis(life.launched_at),
            millis(life.ended_at),
        ];
        self.with_record(&LIVES, &id, columns, life)
    }

    pub(crate) fn message(&self, message: &OutboxMessage) -> Encoded {
        let id = message.id.to_string();
        self.fits(&OUTBOX, &id, message.body.len())?;
        Ok(Row {
            bytes: message.body.len() + 256,
            values: vec![
                text(&id),
                key(&OUTBOX, &id, &message.host)?,
                Value::String(message.evacuation_id.map(|id| id.to_string())),
                millis(message.created_at),
                Value::Bytes(Some(message.body.clone())),
            ],
        })
    }

    fn with_record(
        &self,
        table: &'static Table,
        key: &str,
        mut values: Vec<Value>,
        record: &impl Serialize,
    ) -> Encoded {
        let json = serde_json::to_string(record)
            .map_err(|error| unstorable(table, key, error.to_string()))?;
        self.fits(table, key, json.len())?;
        let bytes = json.len() + 256;
        values.push(Value::String(Some(json)));
        Ok(Row { values, bytes })
    }

    pub(crate) fn fits(
        &self,
        table: &'static Table,
        key: &str,
        bytes: usize,
    ) -> Result<(), StoreError> {
        if bytes <= self.max_record_bytes {
            return Ok(());
        }
        Err(StoreError::TooLarge {
            table: table.name,
            key: key.to_owned(),
            bytes,
            limit: self.max_record_bytes,
        })
    }
}

/// The word for a decision that found room.
pub(crate) const PLACED: &str = "placed";
/// The word for one that did not.
pub(crate) const NO_VALID_HOST: &str = "no_valid_host";

/// The key of a budget.
pub(crate) fn scope(scope: &BudgetScope) -> String {
    match scope {
        BudgetScope::Project(id) => format!("project:{id}"),
        BudgetScope::Group(id) => format!("group:{id}"),
    }
}

fn text(value: &str) -> Value {
    Value::String(Some(value.to_owned()))
}

fn millis(at: Timestamp) -> Value {
    Value::BigInt(Some(at.as_millis()))
}

/// A text that goes into an indexed column.
fn key(table: &'static Table, record: &str, value: &str) -> Result<Value, StoreError> {
    check(table, record, value, MAX_KEY_CHARS)?;
    Ok(text(value))
}

/// Checks a name that must be there and goes into a column of its own.
pub(crate) fn check_key(table: &'static Table, what: &str, value: &str) -> Result<(), StoreError> {
    if value.is_empty() {
        return Err(unstorable(table, what, "it is empty".to_owned()));
    }
    check(table, what, value, MAX_KEY_CHARS)
}

/// What the databases do not agree on is refused before they see it: PostgreSQL takes no NUL,
/// MariaDB ignores blanks at the end of keys, SQLite takes any length.
fn check(
    table: &'static Table,
    record: &str,
    value: &str,
    max_chars: usize,
) -> Result<(), StoreError> {
    let reason = if value.chars().count() > max_chars {
        format!("a name in it has more than {max_chars} characters")
    } else if value.contains('\0') {
        "a name in it contains the character NUL".to_owned()
    } else if value.ends_with(' ') {
        "a name in it ends with a blank".to_owned()
    } else {
        return Ok(());
    };
    let shown = ebbtide_model::names::shorten(record);
    Err(unstorable(table, &shown, reason))
}

fn unstorable(table: &'static Table, key: &str, reason: String) -> StoreError {
    StoreError::Unstorable {
        table: table.name,
        key: key.to_owned(),
        reason,
    }
}

/// JSON has no infinities and no NaN; serde_json writes `null`, which could not be read again.
fn finite(table: &'static Table, key: &str, what: &str, number: f64) -> Result<(), StoreError> {
    if number.is_finite() {
        return Ok(());
    }
    Err(unstorable(table, key, format!("{what} is {number}")))
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
