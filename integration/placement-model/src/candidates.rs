//! `GET /allocation_candidates` for one unnumbered group on root providers.

use crate::model::{Model, ModelResponse, Provider, Refusal, UNDEFINED};
use crate::providers::{aggregates_of, parameters};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// What is asked for.
#[derive(Default)]
struct CandidateQuery {
    resources: BTreeMap<String, u64>,
    required: BTreeSet<String>,
    forbidden: BTreeSet<String>,
    member_of: Vec<BTreeSet<Uuid>>,
    in_tree: Option<String>,
    limit: Option<usize>,
}

impl CandidateQuery {
    fn read(query: &str) -> Result<Self, Refusal> {
        let mut wanted = Self::default();
        for (key, value) in parameters(query) {
            match key.as_str() {
                "resources" => {
                    for pair in value.split(',') {
                        let amount = pair.split_once(':').and_then(|(class, amount)| {
                            let amount = amount.parse().ok().filter(|amount| *amount > 0)?;
                            Some((class.to_owned(), amount))
                        });
                        let bad =
                            || Refusal::bad(format!("Badly formed resources parameter: {pair}"));
                        let (class, amount) = amount.ok_or_else(bad)?;
                        wanted.resources.insert(class, amount);
                    }
                }
                "required" | "root_required" => {
                    for name in value.split(',') {
                        match name.strip_prefix('!') {
                            Some(name) => wanted.forbidden.insert(name.to_owned()),
                            None => wanted.required.insert(name.to_owned()),
                        };
                    }
                }
                "member_of" => wanted.member_of.push(aggregates_of(&value)?),
                "in_tree" => wanted.in_tree = Some(value),
                "limit" => wanted.limit = value.parse().ok(),
                _ => {
                    return Err(Refusal::new(
                        501,
                        UNDEFINED,
                        format!("{key} is not modelled"),
                    ));
                }
            }
        }
        Ok(wanted)
    }
}

impl Model {
    pub(crate) fn candidates(&self, query: &str) -> Result<ModelResponse, Refusal> {
        let wanted = CandidateQuery::read(query)?;
        let mut found: Vec<(Uuid, &Provider)> = self
            .providers()
            .filter(|(uuid, provider)| self.offers(*uuid, provider, &wanted))
            .collect();
        found.sort_by_key(|(_, provider)| provider.place);
        found.truncate(wanted.limit.unwrap_or(usize::MAX));
        let requests: Vec<Value> = found
            .iter()
            .map(|(uuid, _)| {
                let resources = &wanted.resources;
                json!({"allocations": {uuid.to_string(): {"resources": resources}}, "mappings": {"": [uuid]}})
            })
            .collect();
        let summaries: Map<String, Value> = found
            .iter()
            .map(|(uuid, provider)| (uuid.to_string(), self.summary(*uuid, provider)))
            .collect();
        Ok(ModelResponse::ok(
            json!({"allocation_requests": requests, "provider_summaries": summaries}),
        ))
    }

    #[allow(
        clippy::cast_precision_loss,
        reason = "Placement reckons in floats, too"
    )]
    fn offers(&self, uuid: Uuid, provider: &Provider, wanted: &CandidateQuery) -> bool {
        let fits = |(class, amount): (&String, &u64)| {
            provider.inventories.get(class).is_some_and(|of| {
                let used = self.used(uuid, class);
                (used + amount) as f64 <= of.capacity()
                    && (of.min_unit..=of.max_unit).contains(amount)
                    && amount.is_multiple_of(of.step_size)
            })
        };
        wanted.resources.iter().all(fits)
            && wanted.required.is_subset(&provider.traits)
            && wanted.forbidden.is_disjoint(&provider.traits)
            && wanted
                .member_of
                .iter()
                .all(|any| !any.is_disjoint(&provider.aggregates))
            && wanted
                .in_tree
                .as_ref()
                .is_none_or(|tree| *tree == uuid.to_string())
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "Placement cuts the capacity, too"
    )]
    fn summary(&self, uuid: Uuid, provider: &Provider) -> Value {
        let classes = provider.inventories.iter();
        let resources: Map<String, Value> = classes
            .map(|(class, of)| {
                let (capacity, used) = (of.capacity() as i64, self.used(uuid, class));
                (class.clone(), json!({"capacity": capacity, "used": used}))
            })
            .collect();
        json!({
            "resources": resources,
            "traits": provider.traits,
            "parent_provider_uuid": null,
            "root_provider_uuid": uuid,
        })
    }
}
