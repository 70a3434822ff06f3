//! What Nova asks Placement before it filters hosts: the query of `GET /allocation_candidates`,
//! byte for byte (`nova/scheduler/request_filter.py`, `nova/scheduler/utils.py`).

mod group;
mod prefilters;
mod query_parts;
mod resources;
mod traits;

pub use query_parts::{Query, QueryGroup};
pub(crate) use resources::custom_class;

use crate::constraints::Constraints;
use crate::fault::NovaException;
use crate::image::Image;
use crate::model::{Aggregate, Options, RequestSpec};
use group::Group;
use resources::Resources;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A node that a request may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name of the service's host.
    pub host: String,
    /// Hypervisor's host name.
    pub node: String,
    /// UUID of the compute node.
    pub uuid: String,
}

/// What the query depends on besides the request.
#[derive(Debug, Clone)]
pub struct QueryContext<'a> {
    pub aggregates: &'a [Arc<Aggregate>],
    /// Nodes; names compare exactly.
    pub nodes: &'a [Node],
    /// Lowest version of a compute service in all cells.
    pub min_compute_version: i64,
    pub options: &'a Options,
}

/// Nova's queries to Placement for a request, as far as Nova can build them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct QueryAttempt {
    pub query: Option<String>,
    /// The second query for pinned CPUs, with VCPU for PCPU.
    pub fallback_query: Option<String>,
    /// The first query in parts.
    pub parts: Option<Query>,
    /// The second query in parts.
    pub fallback_parts: Option<Query>,
    /// Host and node of the destination, filled in where exactly one node has the name; `None`: no
    /// destination.
    pub destination: Option<(Option<String>, Option<String>)>,
    /// What the pre-filters have made of the destination's aggregates; `None`: no destination, or
    /// any aggregate.
    pub aggregates: Option<Vec<String>>,
    /// What stopped it. The first query may be there all the same.
    pub fault: Option<NovaException>,
}

/// Traits of the root provider.
#[derive(Debug, Clone, Default)]
struct Root {
    required: BTreeSet<String>,
    forbidden: BTreeSet<String>,
    /// Groups that have to come from one subtree below it.
    same_subtree: Vec<Vec<String>>,
}

/// Where the request wants to go; unset and null are one here.
#[derive(Debug, Clone, Default)]
struct Target {
    host: Option<String>,
    node: Option<String>,
    aggregates: Option<Vec<String>>,
    forbidden_aggregates: BTreeSet<String>,
}

/// A request while the query is put together: what Nova changes in the request spec is changed
/// here.
struct Request<'a> {
    spec: &'a RequestSpec,
    options: &'a Options,
    /// An empty one where the request has none.
    image: Image,
    root: Root,
    destination: Option<Target>,
    groups: Vec<Group>,
}

#[must_use]
pub fn query(spec: &RequestSpec, world: &QueryContext<'_>) -> QueryAttempt {
    let mut out = QueryAttempt::default();
    out.fault = ask(spec, world, &mut out).err();
    out
}

fn ask(
    spec: &RequestSpec,
    world: &QueryContext<'_>,
    out: &mut QueryAttempt,
) -> Result<(), NovaException> {
    let mut request = Request::of(spec, world.options);
    request.prefilter(world)?;
    let resources = request.resources(world, true)?;
    out.query = Some(resources.query(&request.root));
    out.parts = Some(resources.asked(&request.root));
    if resources.pinned && !world.options.disable_fallback_pcpu_query {
        let fallback = request.resources(world, false)?;
        out.fallback_query = Some(fallback.query(&request.root));
        out.fallback_parts = Some(fallback.asked(&request.root));
    }
    if let Some(destination) = request.destination {
        out.destination = Some((destination.host, destination.node));
        out.aggregates = destination.aggregates;
    }
    Ok(())
}

impl<'a> Request<'a> {
    fn of(spec: &'a RequestSpec, options: &'a Options) -> Self {
        let groups = spec.requested_resources.iter().map(|group| Group {
            suffix: group.requester_id.clone(),
            resources: group
                .resources
                .iter()
                .map(|(class, amount)| (class.clone(), i128::from(*amount)))
                .collect(),
            required: group.required_traits.clone(),
            forbidden: group.forbidden_traits.clone(),
            aggregates: group.aggregates.clone(),
            forbidden_aggregates: group.forbidden_aggregates.clone(),
            in_tree: group.in_tree.clone(),
        });
        let destination = spec
            .requested_destination
            .as_ref()
            .map(|destination| Target {
                host: destination.host.clone().flatten(),
                node: destination.node.clone().flatten(),
                aggregates: destination.aggregates.clone().flatten(),
                forbidden_aggregates: destination.forbidden_aggregates.clone().unwrap_or_default(),
            });
        Self {
            spec,
            options,
            image: spec.image.clone().unwrap_or_default(),
            root: Root {
                required: spec.level.root_required.clone(),
                forbidden: spec.level.root_forbidden.clone(),
                same_subtree: spec.level.same_subtree.clone(),
            },
            destination,
            groups: groups.collect(),
        }
    }

    /// What flavor and image ask for together.
    fn constraints(&self) -> Constraints<'_> {
        Constraints {
            flavor: &self.spec.flavor,
            image: &self.image,
        }
    }

    /// `resources_from_request_spec`.
    ///
    /// # Errors
    /// NoValidHost for an unknown host or node, TypeError for hints that are null, and the errors
    /// of [`Resources::read`].
    fn resources(
        &mut self,
        world: &QueryContext<'_>,
        pinning: bool,
    ) -> Result<Resources, NovaException> {
        let mut resources = Resources::read(self, pinning)?;
        let (mut host, mut node) = (None, None);
        if let Some(destination) = &self.destination {
            host.clone_from(&destination.host);
            node.clone_from(&destination.node);
            let choices = destination.aggregates.iter().flatten();
            let choices: Vec<Vec<String>> = choices
                .map(|choice| choice.split(',').map(str::to_owned).collect())
                .collect();
            if !choices.is_empty() {
                resources.group(None).aggregates = choices;
            }
            if !destination.forbidden_aggregates.is_empty() {
                let forbidden = destination.forbidden_aggregates.iter().cloned();
                resources.group(None).forbidden_aggregates.extend(forbidden);
            }
        }
        let first =
            |names: &Option<Vec<String>>| names.as_ref().and_then(|names| names.first()).cloned();
        let named = |name: &String| !name.is_empty();
        let host = host
            .filter(named)
            .or_else(|| first(&self.spec.force_hosts))
            .filter(named);
        let node = node
            .filter(named)
            .or_else(|| first(&self.spec.force_nodes))
            .filter(named);
        if host.is_some() || node.is_some() {
            self.aim(world, &mut resources, host.as_deref(), node.as_deref())?;
        }
        let Some(hints) = &self.spec.scheduler_hints else {
            return Err(NovaException::new(
                "TypeError",
                "the scheduler hints are null",
            ));
        };
        if ["group", "same_host", "different_host"]
            .iter()
            .any(|hint| hints.contains_key(*hint))
        {
            resources.limit = None;
        }
        // Without a policy Placement would refuse several groups; Nova helps where the flavor did
        // not make them.
        if resources.suffixed() >= 2 && resources.policy.is_none() && resources.of_flavor <= 1 {
            resources.policy = Some("none".to_owned());
        }
        Ok(resources)
    }

    /// Narrows the query to the one node of a name; for several, it must not be cut off.
    fn aim(
        &mut self,
        world: &QueryContext<'_>,
        resources: &mut Resources,
        host: Option<&str>,
        node: Option<&str>,
    ) -> Result<(), NovaException> {
        let found: Vec<&Node> = world
            .nodes
            .iter()
            .filter(|known| {
                host.is_none_or(|host| host == known.host)
                    && node.is_none_or(|node| node == known.node)
            })
            .collect();
        match found.as_slice() {
            [] => {
                return Err(NovaException::new(
                    "NoValidHost",
                    format!("no such host: {host:?}, node: {node:?}"),
                ));
            }
            [one] => {
                if let Some(destination) = &mut self.destination {
                    destination.host = Some(one.host.clone());
                    destination.node = Some(one.node.clone());
                }
                resources.group(None).in_tree = Some(one.uuid.clone());
            }
            _ => resources.limit = None,
        }
        Ok(())
    }
}
