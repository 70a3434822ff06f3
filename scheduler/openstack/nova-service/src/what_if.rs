//! What-ifs: what a request for new servers would get now.
//!
//! The request is made of what Nova's API would make it of. What only Glance or Cyborg knows is
//! refused, or said in a notice, and never guessed.

use crate::error::NovaServiceError;
use ebbtide_model::{ServerGroup, ServerId, names};
use ebbtide_nova::boot::{BootError, boot_needs};
use ebbtide_nova::image::Image;
use ebbtide_nova::model::{Flavor, InstanceGroup, Options, RequestSpec};
use ebbtide_nova::python::Value as PyValue;
use ebbtide_nova_db::{Group, NovaDb, OfferedFlavor};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use thiserror::Error;
use uuid::Uuid;

/// The hint that names the server group of a request.
pub(crate) const GROUP_HINT: &str = "group";

/// An image, as far as the caller knows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhatIfImage {
    /// Its id; empty: unknown.
    pub id: String,
    /// For example `qcow2`; empty: unknown.
    pub disk_format: String,
    /// Its properties, for example `hw_machine_type`.
    pub properties: BTreeMap<String, String>,
}

/// A request for new servers that is only a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WhatIf {
    /// Ids for the servers. Nova must not have them.
    pub servers: Vec<ServerId>,
    /// On whose behalf.
    pub project_id: String,
    /// Id or name.
    pub flavor: String,
    /// `None`: the caller names none.
    pub image: Option<WhatIfImage>,
    /// The servers boot from a volume, and need no root disk on the host.
    pub boots_from_volume: bool,
    /// Only hosts of this zone.
    pub availability_zone: Option<String>,
    /// Id or name.
    pub group: Option<String>,
    /// Scheduler hints.
    pub hints: BTreeMap<String, Vec<String>>,
    /// Not these hosts.
    pub ignore_hosts: Vec<String>,
    /// Only these hosts.
    pub force_hosts: Vec<String>,
}

/// Why a question has no answer.
#[derive(Debug, Error)]
pub enum WhatIfError {
    /// The flavor does not exist, or nova-api builds none of it for the project.
    #[error("there is no flavor {0:?} that the project may use")]
    NoFlavor(String),
    /// The project has no such server group.
    #[error("the project has no server group {0:?}")]
    NoGroup(String),
    /// The question is malformed.
    #[error("{field}: {problem}")]
    Field {
        /// What is wrong.
        field: &'static str,
        /// Why, and what is accepted.
        problem: String,
    },
    /// What the request needs is made by another service.
    #[error("{0}")]
    Unknown(String),
    /// Nova's databases.
    #[error(transparent)]
    Cloud(#[from] NovaServiceError),
}

impl From<BootError> for WhatIfError {
    fn from(error: BootError) -> Self {
        let problem = error.to_string();
        match error {
            BootError::Refused(_) => Self::Field {
                field: "flavor",
                problem,
            },
            BootError::Unknown(_) => Self::Unknown(problem),
        }
    }
}

/// The first flavor with this id or name that is wanted.
pub(crate) async fn offered_flavor(
    nova: &NovaDb,
    id_or_name: &str,
    is_wanted: impl Fn(&OfferedFlavor) -> bool,
) -> Result<Flavor, WhatIfError> {
    let found = nova.flavors_called(id_or_name).await;
    let found = found.map_err(NovaServiceError::from)?;
    let wanted = found.into_iter().find(is_wanted);
    let wanted = wanted.map(|offered| offered.flavor);
    wanted.ok_or_else(|| WhatIfError::NoFlavor(names::shorten(id_or_name)))
}

/// A server group in the words of both clouds; `None`: Nova does not know its policy either.
pub(crate) fn server_group(group: &Group) -> Option<ServerGroup> {
    Some(ServerGroup {
        id: group.uuid.parse().ok()?,
        name: group.name.clone(),
        project_id: group.project_id.clone(),
        policy: group.policy.as_deref()?.parse().ok()?,
        max_server_per_host: rules(group)
            .get("max_server_per_host")
            .and_then(|most| most.parse().ok())
            .unwrap_or(1),
    })
}

/// The rules of a group's policy, as strings.
fn rules(group: &Group) -> BTreeMap<String, String> {
    let rules = group.rules.as_deref().unwrap_or_default();
    let rules: BTreeMap<String, Value> = serde_json::from_str(rules).unwrap_or_default();
    let text = |value: Value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    rules
        .into_iter()
        .map(|(name, value)| (name, text(value)))
        .collect()
}

/// A server group as it is now. The hosts of its members are known in memory.
///
/// # Errors
/// Those of the database.
pub(crate) async fn instance_group(
    nova: &NovaDb,
    uuid: &str,
) -> Result<Option<InstanceGroup>, NovaServiceError> {
    let group = nova.group(uuid).await?;
    Ok(group.map(|group| InstanceGroup {
        rules: rules(&group),
        uuid: group.uuid,
        policy: group.policy.unwrap_or_default(),
        members: group.members.into_iter().collect(),
        hosts: Vec::new(),
    }))
}

impl WhatIf {
    /// The request as Nova's conductor would send it.
    ///
    /// # Errors
    /// What does not exist, is malformed, or is not known here.
    pub(crate) async fn request(
        &self,
        nova: &NovaDb,
        options: &Options,
    ) -> Result<RequestSpec, WhatIfError> {
        let flavor = self.flavor(nova).await?;
        self.request_of(flavor, nova, options).await
    }

    /// The same for a flavor that is known.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub(crate) async fn request_of(
        &self,
        flavor: Flavor,
        nova: &NovaDb,
        options: &Options,
    ) -> Result<RequestSpec, WhatIfError> {
        let image = self.image()?;
        let needs = boot_needs(&flavor, &image, options)?;
        let mut hints = self.hints.clone();
        let group = self.group(nova).await?;
        if let Some(group) = &group {
            hints.insert(GROUP_HINT.to_owned(), vec![group.uuid.clone()]);
        }
        let names = |hosts: &Vec<String>| Some(hosts.clone()).filter(|hosts| !hosts.is_empty());
        let first = self.servers.first().map(ToString::to_string);
        Ok(RequestSpec {
            num_instances: i64::try_from(self.servers.len()).unwrap_or(i64::MAX),
            instance_uuid: first.unwrap_or_default(),
            project_id: Some(self.project_id.clone()),
            availability_zone: self.availability_zone.clone(),
            flavor,
            image: Some(image),
            scheduler_hints: Some(hints),
            instance_group: group,
            ignore_hosts: names(&self.ignore_hosts),
            force_hosts: names(&self.force_hosts),
            numa_topology: needs.numa_topology,
            pci_requests: Some(needs.pci_requests),
            requested_resources: needs.requested_resources,
            is_bfv: self.boots_from_volume,
            ..RequestSpec::default()
        })
    }

    async fn flavor(&self, nova: &NovaDb) -> Result<Flavor, WhatIfError> {
        let is_offered = |offered: &OfferedFlavor| offered.is_for(&self.project_id);
        offered_flavor(nova, &self.flavor, is_offered).await
    }

    async fn group(&self, nova: &NovaDb) -> Result<Option<InstanceGroup>, WhatIfError> {
        if self.hints.contains_key(GROUP_HINT) {
            return Err(WhatIfError::Field {
                field: "scheduler_hints",
                problem: "the server group is a field of its own: `group`".to_owned(),
            });
        }
        let Some(called) = &self.group else {
            return Ok(None);
        };
        let all = nova.groups().await.map_err(NovaServiceError::from)?;
        let own = all
            .into_iter()
            .filter(|group| group.project_id == self.project_id);
        let mut fitting = own.filter(|group| group.uuid == *called || group.name == *called);
        let missing = || WhatIfError::NoGroup(names::shorten(called));
        let uuid = match (fitting.next(), fitting.next()) {
            (Some(one), None) => one.uuid,
            (None, _) => return Err(missing()),
            (Some(_), Some(_)) => {
                return Err(WhatIfError::Field {
                    field: "group",
                    problem: format!("several server groups are called {called:?}; give the id"),
                });
            }
        };
        let group = instance_group(nova, &uuid).await?;
        let mut group = group.ok_or_else(missing)?;
        // nova-api makes the servers members before they are scheduled.
        let own = self.servers.iter().map(ToString::to_string);
        group.members.extend(own);
        Ok(Some(group))
    }

    /// The image as nova-api reads it.
    fn image(&self) -> Result<Image, WhatIfError> {
        let known = self.image.clone().unwrap_or_default();
        let mut image = json!({"name": "", "properties": known.properties});
        for (name, text) in [("id", known.id), ("disk_format", known.disk_format)] {
            if !text.is_empty() {
                image[name] = json!(text);
            }
        }
        Image::read(&PyValue::from(&image)).map_err(|fault| WhatIfError::Field {
            field: "image",
            problem: format!("Nova refuses it: {}", fault.message),
        })
    }

    /// Whether the answer is one for an image without properties.
    #[must_use]
    pub fn knows_no_image_properties(&self) -> bool {
        self.image
            .as_ref()
            .is_none_or(|image| image.properties.is_empty())
    }

    pub(crate) fn instances(&self) -> Vec<Uuid> {
        self.servers.iter().map(|server| server.0).collect()
    }
}
