//! What instances have in other tables: metadata, image properties, and their server group in the
//! API database.

use crate::cell::{CellDb, InstanceDetail, padded, places};
use crate::error::NovaDbError;
use crate::pool::DatabasePool;
use crate::row::instance::Instance;
use crate::row::pci::{self, HeldDevice};
use sea_orm::Value;
use std::collections::HashMap;

/// Most instances of which details are asked for at once.
const CHUNK: usize = 500;

impl CellDb {
    /// Adds details to instances that are not deleted.
    pub(crate) async fn complete(
        &self,
        instances: &mut [Instance],
        detail: InstanceDetail,
    ) -> Result<(), NovaDbError> {
        for chunk in instances.chunks_mut(CHUNK) {
            let places: HashMap<String, usize> = chunk
                .iter()
                .enumerate()
                .filter(|(_, instance)| !instance.deleted)
                .map(|(place, instance)| (instance.uuid.clone(), place))
                .collect();
            if places.is_empty() {
                continue;
            }
            let uuids: Vec<String> = places.keys().cloned().collect();
            let images = async {
                if detail.image_properties {
                    self.pairs("instance_system_metadata", "image_", &uuids)
                        .await
                } else {
                    Ok(Vec::new())
                }
            };
            let with_devices = chunk.iter();
            let with_devices = with_devices.filter(|i| i.has_pci_requests && !i.deleted);
            let with_devices: Vec<String> = with_devices.map(|i| i.uuid.clone()).collect();
            let (metadata, images, groups, devices) = tokio::try_join!(
                self.pairs("instance_metadata", "ebbtide:", &uuids),
                images,
                group_uuids(&self.api, &uuids),
                self.devices(&with_devices)
            )?;
            for (uuid, name, value) in metadata {
                // The collation may not tell upper from lower case.
                if let Some(place) = places.get(&uuid)
                    && name.starts_with("ebbtide:")
                {
                    let value = value.unwrap_or_default();
                    chunk[*place].metadata.insert(name, value);
                }
            }
            for (uuid, name, value) in images {
                if let Some(place) = places.get(&uuid)
                    && let Some(name) = name.strip_prefix("image_")
                {
                    let value = value.map_or(serde_json::Value::Null, Into::into);
                    chunk[*place]
                        .image_properties
                        .insert(name.to_owned(), value);
                }
            }
            for (uuid, device) in devices {
                if let Some(place) = places.get(&uuid) {
                    let known = &mut chunk[*place].pci_devices;
                    if let Ok(list) = known {
                        match device {
                            Ok(device) => list.push(device),
                            Err(problem) => *known = Err(problem),
                        }
                    }
                }
            }
            for (uuid, group) in groups {
                if let Some(place) = places.get(&uuid) {
                    chunk[*place].server_group = Some(group);
                }
            }
        }
        Ok(())
    }

    /// Servers that are not deleted and have this key in their metadata.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn servers_with_metadata(&self, key: &str) -> Result<Vec<String>, NovaDbError> {
        const TABLE: &str = "instance_metadata";
        let column = self.pool.dialect().quoted("key");
        let sql = format!(
            "SELECT m.instance_uuid FROM {TABLE} m JOIN instances i ON i.uuid = m.instance_uuid \
             WHERE m.{column} = ? AND m.deleted = 0 AND i.deleted = 0"
        );
        let rows = self
            .pool
            .rows("read metadata", &sql, vec![key.into()])
            .await?;
        rows.iter()
            .map(|row| {
                let uuid = row.try_get_by_index(0);
                uuid.map_err(|error| self.pool.unreadable(TABLE, &error))
            })
            .collect()
    }

    /// The devices of instances, by address.
    async fn devices(&self, uuids: &[String]) -> Result<Vec<HeldDevice>, NovaDbError> {
        const TABLE: &str = "pci_devices";
        if uuids.is_empty() {
            return Ok(Vec::new());
        }
        let values = padded(uuids.iter().cloned().map(Value::from));
        let sql = format!(
            "SELECT {} FROM {TABLE} p WHERE p.instance_uuid IN ({}) AND p.deleted = 0 \
             AND p.status IN ('claimed', 'allocated') ORDER BY p.address",
            pci::device_columns(self.pool.dialect()),
            places(values.len())
        );
        let rows = self.pool.rows("read PCI devices", &sql, values).await?;
        rows.iter()
            .map(|row| pci::device(row).map_err(|error| self.pool.unreadable(TABLE, &error)))
            .collect()
    }

    async fn pairs(
        &self,
        table: &'static str,
        prefix: &str,
        uuids: &[String],
    ) -> Result<Vec<(String, String, Option<String>)>, NovaDbError> {
        let key = self.pool.dialect().quoted("key");
        let mut values = padded(uuids.iter().cloned().map(Value::from));
        let sql = format!(
            "SELECT m.instance_uuid, m.{key}, m.value FROM {table} m \
             WHERE m.instance_uuid IN ({}) AND m.deleted = 0 AND m.{key} LIKE ? ORDER BY m.id",
            places(values.len())
        );
        // The underscore of `image_` would match any character; names are checked again above.
        values.push(format!("{prefix}%").into());
        let rows = self.pool.rows("read metadata", &sql, values).await?;
        rows.iter()
            .map(|row| {
                let read = || {
                    Ok((
                        row.try_get_by_index(0)?,
                        row.try_get_by_index::<Option<String>>(1)?
                            .unwrap_or_default(),
                        row.try_get_by_index(2)?,
                    ))
                };
                read().map_err(|error: sea_orm::DbErr| self.pool.unreadable(table, &error))
            })
            .collect()
    }
}

/// The groups of instances, by instance. An instance is in one group at most.
pub(crate) async fn group_uuids(
    api: &DatabasePool,
    uuids: &[String],
) -> Result<HashMap<String, String>, NovaDbError> {
    let mut groups = HashMap::new();
    for uuids in uuids.chunks(CHUNK) {
        let values = padded(uuids.iter().cloned().map(Value::from));
        let sql = format!(
            "SELECT m.instance_uuid, g.uuid FROM instance_group_member m \
             JOIN instance_groups g ON g.id = m.group_id WHERE m.instance_uuid IN ({})",
            places(values.len())
        );
        for row in &api.rows("read server groups", &sql, values).await? {
            let read = || Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?));
            let (instance, group): (String, String) = read()
                .map_err(|error: sea_orm::DbErr| api.unreadable("instance_groups", &error))?;
            groups.insert(instance, group);
        }
    }
    Ok(groups)
}
