//! The instances of each host: reported by computes, and confirmed from the cells' databases where
//! Nova would query them.

use super::{Database, convert};
use ebbtide_nova_db::{CellDb, Instance, InstanceDetail, NovaDbError};
use ebbtide_nova_objects::UpdateInstanceInfo;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

impl Database {
    /// Processes a compute's list of its instances (`update_instance_info`).
    pub(crate) async fn instances_updated(&self, info: &UpdateInstanceInfo) {
        let records = info
            .instances
            .iter()
            .filter_map(convert::told_instance)
            .collect();
        let confirmed = self.cloud_mut(|cloud| cloud.update_instance_info(&info.host, records));
        self.confirm_host(&info.host, confirmed).await;
    }

    /// If a compute's report does not fit the known instances, reads them from its cell's database.
    pub(crate) async fn confirm_host(&self, host: &str, confirmed: bool) {
        if confirmed {
            return;
        }
        let cell = match self.nova().host_mapping(host).await {
            Ok(Some(mapping)) => mapping.cell_uuid,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(code = error.code(), "{error}");
                return;
            }
        };
        self.confirm(vec![(cell, host.to_owned())]).await;
    }

    /// Reads the instances of hosts, by cell and host.
    pub(crate) async fn confirm(&self, hosts: Vec<(String, String)>) {
        let mut by_cell: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (cell, host) in hosts {
            by_cell.entry(cell).or_default().push(host);
        }
        for (cell, hosts) in by_cell {
            if let Err(error) = self.confirm_cell(&cell, &hosts).await {
                tracing::warn!(code = error.code(), "{error}");
            }
        }
    }

    async fn confirm_cell(&self, cell: &str, hosts: &[String]) -> Result<(), NovaDbError> {
        let cell: CellDb = self.nova().cell(cell)?;
        let rows = cell
            .host_instances(hosts, InstanceDetail::default())
            .await?;
        let mut by_host: HashMap<&str, Vec<&Instance>> = hosts
            .iter()
            .map(|host| (host.as_str(), Vec::new()))
            .collect();
        for row in &rows {
            if let Some(of) = row.host.as_deref().and_then(|host| by_host.get_mut(host)) {
                of.push(row);
            }
        }
        self.cloud_mut(|cloud| {
            for (host, rows) in by_host {
                let records: Vec<_> = rows.into_iter().filter_map(convert::instance).collect();
                let uuids: Vec<Uuid> = records.iter().map(|record| record.uuid).collect();
                for record in records {
                    cloud.put_instance(record);
                }
                cloud.host_instances(host, &uuids);
            }
        });
        Ok(())
    }

    /// The providers of the hosts where instances are, for requests that may have been begun
    /// before. Instances without a host are omitted.
    pub(crate) async fn homes(&self, instances: &[Uuid]) -> HashMap<Uuid, Uuid> {
        let mut homes = HashMap::new();
        for instance in instances {
            match self.home(*instance).await {
                Ok(Some(home)) => drop(homes.insert(*instance, home)),
                Ok(None) => {}
                Err(error) => tracing::warn!(code = error.code(), "{error}"),
            }
        }
        homes
    }

    /// The provider of the host where an instance is; `None`: it is on no host.
    ///
    /// # Errors
    /// Those of the databases.
    pub(crate) async fn home(&self, instance: Uuid) -> Result<Option<Uuid>, NovaDbError> {
        let uuid = instance.to_string();
        let Some(cell) = self.nova().instance_cell(&uuid).await? else {
            return Ok(None);
        };
        let cell = self.nova().cell(&cell)?;
        let Some(row) = cell.instance(&uuid).await? else {
            return Ok(None);
        };
        let (Some(host), node) = (row.host, row.node) else {
            return Ok(None);
        };
        let nodes = cell.compute_nodes_of_host(&host).await?;
        let home = nodes
            .into_iter()
            .find(|n| n.nodename == node)
            .and_then(|n| Uuid::parse_str(n.uuid.as_deref()?).ok());
        Ok(home)
    }
}
