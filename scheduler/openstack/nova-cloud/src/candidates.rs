//! Which hosts Placement would offer for a request.
//!
//! The cloud answers a query with one group whose classes are all on root providers from memory:
//! hosts with `(total - reserved) * ratio - used >= amount`, within min_unit, max_unit and
//! step_size, with the required traits and aggregates. Only Placement itself can answer other
//! queries. Placement cuts its answer at `limit` hosts in an order of its own. The cloud considers
//! all hosts, unless
//! [`CloudSettings::cut_like_placement`](crate::CloudSettings::cut_like_placement) is set.

use crate::cloud::providers::bad;
use crate::cloud::{Cloud, HostStateKind};
use crate::error::CloudError;
use crate::facts::HostRef;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::model::{AllocationCandidate, RequestSpec};
use ebbtide_nova::placement::{self, Node, Query, QueryContext, QueryGroup};
use ebbtide_nova::table::HostSet;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use uuid::Uuid;

/// Nova's query to Placement for a request.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementQuery {
    /// The first query; its text is what goes behind `GET /allocation_candidates?`.
    pub query: Query,
    /// The second, for pinned CPUs, with VCPU for PCPU.
    pub fallback: Option<Query>,
}

/// Why only Placement itself can answer a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlacementOnly {
    /// Groups with a suffix, or a group policy.
    Granular,
    /// A child provider has a requested class.
    Nested,
    /// A sharing provider has a requested class.
    Sharing,
    /// The query requests only traits or aggregates.
    NoResources,
    /// The query needs inventories, traits or aggregates of a provider that are unknown.
    Unknown,
}

impl PlacementOnly {
    /// In words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Granular => "the request has granular groups",
            Self::Nested => "a child provider has a class that is asked for",
            Self::Sharing => "a sharing provider has a class that is asked for",
            Self::NoResources => "no resources are asked for",
            Self::Unknown => "a provider was not read yet",
        }
    }
}

/// What is offered.
#[derive(Debug, Clone, Default)]
pub(crate) enum CandidateOffer {
    /// Nothing: the request does not ask Placement.
    #[default]
    Nothing,
    /// The same amounts on the root provider of each host of a set. Of two the first counts first.
    Alike(Vec<(HostSet, BTreeMap<String, u64>)>),
    /// Placement's own words, by place.
    Answered(Arc<HashMap<usize, Vec<AllocationCandidate>>>),
}

/// Hosts that may take a request, before Nova's filters. They are good until a host comes or goes.
#[derive(Debug, Clone, Default)]
pub struct CandidateHosts {
    pub(crate) hosts: HostSet,
    pub(crate) offer: CandidateOffer,
    pub(crate) layout: u64,
}

impl CandidateHosts {
    /// How many hosts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hosts.count()
    }

    /// The same hosts, without what could be claimed there.
    pub(crate) fn names_only(&self) -> Self {
        Self {
            hosts: self.hosts.clone(),
            offer: CandidateOffer::Nothing,
            layout: self.layout,
        }
    }

    /// None at all: Nova answers NoValidHost without a look at its filters.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The hosts, in the cloud's order. The cloud has to be the one that was asked, and unchanged.
    #[must_use]
    pub fn hosts(&self, cloud: &Cloud) -> Vec<HostRef> {
        self.hosts
            .iter()
            .map(|place| cloud.host_at(place))
            .collect()
    }

    /// True if all hosts are among those of `others`, as long as no host has come or gone between
    /// the two.
    #[must_use]
    pub fn are_among(&self, others: &Self) -> bool {
        let theirs: std::collections::BTreeSet<usize> = others.hosts.iter().collect();
        self.layout == others.layout && self.hosts.iter().all(|place| theirs.contains(&place))
    }
}

/// A candidate as Placement writes it.
pub(crate) fn candidate(provider: Uuid, resources: &BTreeMap<String, u64>) -> AllocationCandidate {
    let provider = provider.to_string();
    AllocationCandidate {
        allocations: json!({ provider.clone(): { "resources": resources } }),
        mappings: json!({ "": [provider] }),
    }
}

impl Cloud {
    /// Nova's query to Placement for this request, as text and in parts. As Nova does, this fills
    /// the node and the aggregates of the destination into `spec`, because notifications contain
    /// them.
    ///
    /// # Errors
    /// The exceptions that Nova raises: RequestFilterFailed, NoValidHost for an unknown host, and
    /// so on.
    pub fn ask(&self, spec: &mut RequestSpec) -> Result<PlacementQuery, NovaException> {
        let nodes = self.nodes_named(spec);
        let world = QueryContext {
            aggregates: &self.aggregate_list,
            nodes: &nodes,
            min_compute_version: self.min_compute_version,
            options: self.options(),
        };
        let attempt = placement::query(spec, &world);
        if let Some(fault) = attempt.fault {
            return Err(fault);
        }
        if let Some(named) = attempt.destination {
            let destination = spec.requested_destination.get_or_insert_default();
            if let (Some(host), Some(node)) = named {
                destination.host = Some(Some(host));
                destination.node = Some(Some(node));
            }
            if attempt.aggregates.is_some() {
                destination.aggregates = Some(attempt.aggregates);
            }
        }
        let query = attempt.parts.unwrap_or_default();
        Ok(PlacementQuery {
            query,
            fallback: attempt.fallback_parts,
        })
    }

    /// The nodes that the request's names could mean.
    fn nodes_named(&self, spec: &RequestSpec) -> Vec<Node> {
        let destination = spec.requested_destination.as_ref();
        let hosts = destination
            .and_then(|d| d.host.clone().flatten())
            .into_iter();
        let hosts = hosts.chain(spec.force_hosts.iter().flatten().take(1).cloned());
        let by_host = hosts.filter_map(|host| self.nodes_of.get(&host)).flatten();
        let mut uuids: Vec<Uuid> = by_host.copied().collect();
        let names = destination
            .and_then(|d| d.node.clone().flatten())
            .into_iter();
        let names: Vec<String> = names
            .chain(spec.force_nodes.iter().flatten().take(1).cloned())
            .collect();
        if uuids.is_empty() && !names.is_empty() {
            let of_name = |(uuid, node): (&Uuid, &crate::cloud::Node)| {
                names.contains(&node.row.nodename).then_some(*uuid)
            };
            uuids.extend(self.nodes.iter().filter_map(of_name));
        }
        uuids.sort_unstable();
        uuids.dedup();
        let node = |uuid: Uuid| {
            let node = self.nodes.get(&uuid)?;
            Some(Node {
                host: node.row.host.clone(),
                node: node.row.nodename.clone(),
                uuid: uuid.to_string(),
            })
        };
        uuids.into_iter().filter_map(node).collect()
    }

    /// The hosts that Placement would return, computed from memory.
    ///
    /// # Errors
    /// [`PlacementOnly`]: only Placement itself can answer this query.
    pub fn candidates(&self, asked: &PlacementQuery) -> Result<CandidateHosts, PlacementOnly> {
        let mut sets = Vec::new();
        let mut hosts = HostSet::none(self.at.len());
        for query in [Some(&asked.query), asked.fallback.as_ref()]
            .into_iter()
            .flatten()
        {
            let (mut fitting, resources) = self.fitting(query, HostStateKind::Full)?;
            if let (true, Some(limit)) = (self.settings.cut_like_placement, query.limit) {
                let beyond: Vec<usize> = fitting
                    .iter()
                    .skip(usize::try_from(limit).unwrap_or(0))
                    .collect();
                beyond.into_iter().for_each(|at| fitting.clear(at));
            }
            hosts.join(&fitting);
            sets.push((fitting, resources));
        }
        Ok(CandidateHosts {
            hosts,
            offer: CandidateOffer::Alike(sets),
            layout: self.layout,
        })
    }

    /// Hosts that satisfy a query, and the amounts.
    pub(crate) fn fitting(
        &self,
        query: &Query,
        which: HostStateKind,
    ) -> Result<(HostSet, BTreeMap<String, u64>), PlacementOnly> {
        let [group] = query.groups.as_slice() else {
            return Err(if query.groups.is_empty() {
                PlacementOnly::NoResources
            } else {
                PlacementOnly::Granular
            });
        };
        if group.suffix.is_some() {
            return Err(PlacementOnly::Granular);
        }
        if group.resources.is_empty() {
            return Err(PlacementOnly::NoResources);
        }
        self.others_are_not_asked(group)?;
        let mut hosts = self.table.known().clone();
        for (class, amount) in &group.resources {
            self.columns.keep_fitting(&mut hosts, class, *amount, which);
        }
        self.keep_members(&mut hosts, group)?;
        self.keep_traits(&mut hosts, query, group)?;
        let amount = |(class, amount): (&String, &i128)| {
            (class.clone(), u64::try_from(*amount).unwrap_or(0))
        };
        Ok((hosts, group.resources.iter().map(amount).collect()))
    }

    /// # Errors
    /// Children or sharing providers have a requested class.
    pub(crate) fn others_are_not_asked(&self, group: &QueryGroup) -> Result<(), PlacementOnly> {
        for provider in self
            .others
            .iter()
            .filter_map(|uuid| self.providers.get(uuid))
        {
            let child = provider.parent.is_some();
            let Some(inventories) = &provider.inventories else {
                // A root provider that was never read may be a sharing one.
                return Err(PlacementOnly::Unknown);
            };
            let shares = provider.traits.is_none() || provider.shares();
            if (child || shares)
                && inventories
                    .keys()
                    .any(|class| group.resources.contains_key(class))
            {
                return Err(if child {
                    PlacementOnly::Nested
                } else {
                    PlacementOnly::Sharing
                });
            }
        }
        Ok(())
    }

    fn keep_members(&self, hosts: &mut HostSet, group: &QueryGroup) -> Result<(), PlacementOnly> {
        let asks = !group.member_of.is_empty() || !group.forbidden_aggregates.is_empty();
        if asks && hosts.meets(&self.columns.aggregates_unknown) {
            return Err(PlacementOnly::Unknown);
        }
        let named = group.member_of.iter().flatten();
        let foreign = |uuid: &String| !self.aggregate_list.iter().any(|known| known.uuid == *uuid);
        if asks
            && hosts.meets(&self.columns.aggregates_partial)
            && named.chain(&group.forbidden_aggregates).any(foreign)
        {
            return Err(PlacementOnly::Unknown);
        }
        for choice in &group.member_of {
            hosts.keep(&self.columns.in_any(choice.iter()));
        }
        hosts.remove(&self.columns.in_any(group.forbidden_aggregates.iter()));
        if let Some(tree) = &group.in_tree {
            let root = tree.parse::<Uuid>().ok().map(|uuid| {
                let provider = self.providers.get(&uuid);
                provider.and_then(|provider| provider.root).unwrap_or(uuid)
            });
            let place = root.and_then(|root| self.nodes.get(&root)?.place);
            let mut only = HostSet::none(self.at.len());
            if let Some(place) = place {
                only.set(place);
            }
            hosts.keep(&only);
        }
        Ok(())
    }

    fn keep_traits(
        &self,
        hosts: &mut HostSet,
        query: &Query,
        group: &QueryGroup,
    ) -> Result<(), PlacementOnly> {
        let required = || query.root_required.iter().chain(&group.required);
        let forbidden = || query.root_forbidden.iter().chain(&group.forbidden);
        // Computes set this trait when they are disabled. If a host's traits were not read, its
        // service row says the same.
        let told_by_service = |name: &String| name == "COMPUTE_STATUS_DISABLED";
        let asks = required().next().is_some() || !forbidden().all(told_by_service);
        if asks && hosts.meets(&self.columns.traits_unknown) {
            return Err(PlacementOnly::Unknown);
        }
        required().for_each(|name| self.columns.keep_trait(hosts, name));
        forbidden().for_each(|name| self.columns.drop_trait(hosts, name));
        Ok(())
    }

    /// The hosts of Placement's real answer (`allocation_requests` and `provider_summaries`). A
    /// host is offered every allocation request that names its root provider, as Nova does it.
    ///
    /// # Errors
    /// [`CloudError::BadAnswer`].
    pub fn candidates_from_answer(&self, answer: &Value) -> Result<CandidateHosts, CloudError> {
        let requests = answer.get("allocation_requests").and_then(Value::as_array);
        let requests = requests.ok_or_else(|| bad("allocation_requests", "is not there"))?;
        let mut told: HashMap<usize, Vec<AllocationCandidate>> = HashMap::new();
        let mut hosts = HostSet::none(self.at.len());
        for (at, request) in requests.iter().enumerate() {
            let allocations = request.get("allocations").filter(|all| all.is_object());
            let allocations = allocations.ok_or_else(|| {
                bad(
                    &format!("allocation_requests[{at}].allocations"),
                    "is no object",
                )
            })?;
            if !self.fits_what_runs(allocations) {
                continue;
            }
            let offered = AllocationCandidate {
                allocations: allocations.clone(),
                mappings: request.get("mappings").cloned().unwrap_or(Value::Null),
            };
            for provider in allocations
                .as_object()
                .into_iter()
                .flatten()
                .map(|(uuid, _)| uuid)
            {
                let node = provider
                    .parse::<Uuid>()
                    .ok()
                    .and_then(|uuid| self.nodes.get(&uuid));
                if let Some(place) = node.and_then(|node| node.place) {
                    hosts.set(place);
                    told.entry(place).or_default().push(offered.clone());
                }
            }
        }
        Ok(CandidateHosts {
            hosts,
            offer: CandidateOffer::Answered(Arc::new(told)),
            layout: self.layout,
        })
    }

    /// Whether an offer of Placement is really free: Placement does not see victims that still run
    /// without their allocations.
    fn fits_what_runs(&self, allocations: &Value) -> bool {
        let mut providers = allocations.as_object().into_iter().flatten();
        providers.all(|(provider, offered)| {
            let Ok(provider) = provider.parse::<Uuid>() else {
                return true;
            };
            let resources = offered.get("resources").and_then(Value::as_object);
            let amounts = resources.into_iter().flatten();
            let amounts = amounts
                .filter_map(|(class, amount)| Some((class.clone(), amount.as_u64()?)))
                .collect();
            self.fits_beside(provider, &amounts)
        })
    }

    /// All hosts, for requests that do not ask Placement (a rebuild).
    #[must_use]
    pub fn all_hosts(&self) -> CandidateHosts {
        CandidateHosts {
            hosts: self.table.known().clone(),
            offer: CandidateOffer::Nothing,
            layout: self.layout,
        }
    }

    /// Candidates whose instances are not confirmed, by cell and service host: Nova reads these
    /// instances from the cell's database for each request. Needed only for requests with a server
    /// group.
    #[must_use]
    pub fn unconfirmed(&self, candidates: &CandidateHosts) -> Vec<(String, String)> {
        let hosts = candidates.hosts.iter().map(|place| self.host_at(place));
        let open = hosts.filter(|host| {
            let known = self.host_instances.get(&host.host);
            known.is_none_or(|known| !known.confirmed)
        });
        let mut open: Vec<(String, String)> =
            open.map(|host| (host.cell_uuid, host.host)).collect();
        open.sort_unstable();
        open.dedup();
        open
    }
}
