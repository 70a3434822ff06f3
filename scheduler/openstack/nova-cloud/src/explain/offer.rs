//! Which hosts Placement did not offer, and why: what stands before Nova's filters.

use super::count;
use crate::candidates::{CandidateHosts, PlacementQuery};
use crate::cloud::Cloud;
use ebbtide_model::decision::{DroppedHost, FilterStep};
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova::placement::{Query, QueryGroup};
use ebbtide_nova::schedule::RECORDED_DROPPED;

/// The name of this step among the filters.
const PLACEMENT: &str = "Placement";

impl Cloud {
    /// What Placement's answer left of the hosts where the request looks, as a filter step. The
    /// reasons are those of now, so ask soon after the decision.
    #[must_use]
    pub fn explain_offer(
        &self,
        spec: &RequestSpec,
        asked: &PlacementQuery,
        offered: &CandidateHosts,
    ) -> FilterStep {
        let all = self.hosts_for(spec);
        let known = offered.layout == self.layout || offered.is_empty();
        let mut left = offered.hosts.clone();
        if left.is_empty() {
            left = all.none_like();
        }
        let dropped = if known {
            let gone = all.without(&left);
            let some = gone.iter().take(RECORDED_DROPPED);
            some.map(|at| DroppedHost {
                host: self.host_at(at).host,
                reason: self.why_not(at, asked),
            })
            .collect()
        } else {
            // Places have another meaning since a host came or went.
            Vec::new()
        };
        let after = if known {
            left.keep(&all);
            left.count()
        } else {
            offered.len()
        };
        FilterStep {
            filter: PLACEMENT.to_owned(),
            before: count(all.count().max(after)),
            after: count(after),
            dropped,
        }
    }

    /// Why a host is not offered for a query.
    fn why_not(&self, at: usize, asked: &PlacementQuery) -> String {
        let query = &asked.query;
        let whole = || query.groups.iter().find(|group| group.suffix.is_none());
        let reasons = whole().map(|group| self.lacks(at, query, group));
        let reasons = reasons.unwrap_or_default();
        if !reasons.is_empty() {
            return reasons.join("; ");
        }
        if query.groups.len() > 1 {
            return "Placement did not offer it for all request groups".to_owned();
        }
        "Placement did not offer it; it has changed since".to_owned()
    }

    /// What a host lacks, each in words.
    fn lacks(&self, at: usize, query: &Query, group: &QueryGroup) -> Vec<String> {
        let columns = &self.columns;
        let mut lacks: Vec<String> = Vec::new();
        for (class, amount) in &group.resources {
            lacks.extend(columns.why_not(at, class, *amount));
        }
        for choice in &group.member_of {
            if !columns.in_any(choice.iter()).has(at) {
                lacks.push("it is not in an aggregate that the request asks for".to_owned());
            }
        }
        if columns.in_any(group.forbidden_aggregates.iter()).has(at) {
            lacks.push("it is in an aggregate that the request must not use".to_owned());
        }
        for name in query.root_required.iter().chain(&group.required) {
            if !columns.has_trait(at, name) {
                lacks.push(format!("it lacks the trait {name}"));
            }
        }
        for name in query.root_forbidden.iter().chain(&group.forbidden) {
            if columns.has_trait(at, name) {
                lacks.push(format!("it has the trait {name}"));
            }
        }
        if group.in_tree.as_deref() != Some(&self.host_at(at).uuid.to_string())
            && group.in_tree.is_some()
        {
            lacks.push("the request is for another host".to_owned());
        }
        lacks
    }
}
