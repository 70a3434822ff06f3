//! Adoption of servers that are already placed.

use crate::transition::Transition;
use crate::{AdoptServer, Region, RegionError, capacity};
use ebbtide_model::{Server, ServerStatus, names};
use std::collections::BTreeMap;

impl Region {
    pub(crate) fn adopt_server(
        &mut self,
        transition: &mut Transition<'_>,
        adopt: AdoptServer,
    ) -> Result<Server, RegionError> {
        names::check_name("server", &adopt.name)?;
        names::check_name("project", &adopt.project_id)?;
        let properties = adopt.flavor.properties()?;
        if let Some(known) = self.servers.get(&adopt.id) {
            return if known.host.as_deref() == Some(&adopt.host) && known.flavor == adopt.flavor {
                Ok(known.clone())
            } else {
                Err(RegionError::Exists {
                    what: "server",
                    name: adopt.id.to_string(),
                    next: "it is on another host or has another flavor; use a new id",
                })
            };
        }
        if self.servers.deleted().contains(adopt.id) {
            return Err(RegionError::Exists {
                what: "server",
                name: adopt.id.to_string(),
                next: "it is gone already; for a new server use a new id",
            });
        }
        let usage = self
            .table
            .usage(&adopt.host)
            .ok_or_else(|| RegionError::NotFound {
                what: "host",
                name: names::shorten(&adopt.host),
                next: "`ebbtide host list` shows those whose agents have registered",
            })?;
        for (class, amount) in properties.resources.iter() {
            let free = capacity::full(&usage, class);
            if adopt.start_now && capacity::units(amount) > free {
                return Err(RegionError::Conflict(format!(
                    "host {} has {free} {class} free, the server needs {amount}",
                    adopt.host
                )));
            }
        }
        let launched_at = adopt.launched_at.unwrap_or(transition.now);
        if launched_at > transition.now {
            return Err(RegionError::Conflict(format!(
                "launched_at {launched_at} is in the future"
            )));
        }
        let mut server = Server {
            id: adopt.id,
            name: adopt.name,
            project_id: adopt.project_id,
            flavor: adopt.flavor,
            group_id: adopt.group.map(|g| g.id),
            availability_zone: None,
            host: Some(adopt.host),
            status: ServerStatus::Active,
            external: false,
            decision_id: None,
            evacuation_id: None,
            created_at: launched_at,
            launched_at: Some(launched_at),
            ended_at: None,
            fault: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            refused_hosts: Vec::new(),
            max_price: None,
            left_hosts: BTreeMap::new(),
            last_message_at: None,
            reported_at: None,
            starts: 0,
            comeback: None,
        };
        if adopt.start_now {
            self.start(transition, &mut server);
        } else {
            self.servers.note_started(server.id, launched_at);
            self.save_server(transition, server.clone());
        }
        Ok(server)
    }
}
