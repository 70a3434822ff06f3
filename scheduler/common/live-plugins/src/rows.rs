//! Changes of plugins as rows of the database.

use ebbtide_plugins::{Component, PluginOverride, PluginOverrides};
use ebbtide_store::{PluginRow, PluginStore, StoreError};

fn unreadable(name: &str, error: &serde_json::Error) -> StoreError {
    StoreError::Corrupt {
        table: "plugins".to_owned(),
        key: name.to_owned(),
        reason: error.to_string(),
    }
}

/// All stored changes. Components that are already in memory are not read again.
pub(crate) async fn read(
    store: &PluginStore,
    known: &PluginOverrides,
) -> Result<PluginOverrides, StoreError> {
    let mut all = PluginOverrides::default();
    for row in store.rows().await? {
        let mut overrides: PluginOverride =
            serde_json::from_str(&row.record).map_err(|error| unreadable(&row.name, &error))?;
        if !row.digest.is_empty() {
            let same = known
                .get(&row.name)
                .and_then(|overrides| overrides.component.clone());
            let same = same.filter(|component| component.digest() == row.digest);
            overrides.component = match same {
                Some(component) => Some(component),
                None => store.component(&row.name).await?.map(Component::new),
            };
        }
        all.insert(row.name, overrides);
    }
    Ok(all)
}

/// All stored changes, with their components.
///
/// # Errors
/// Those of the database; `Corrupt` for a row that no scheduler reads.
pub async fn stored_overrides(store: &PluginStore) -> Result<PluginOverrides, StoreError> {
    read(store, &PluginOverrides::default()).await
}

/// Stores a change; an empty one is deleted.
pub(crate) async fn write(
    store: &PluginStore,
    name: &str,
    overrides: &PluginOverride,
) -> Result<(), StoreError> {
    if overrides.is_empty() {
        return store.delete(name).await;
    }
    let component = overrides.component.as_ref();
    let row = PluginRow {
        name: name.to_owned(),
        record: serde_json::to_string(overrides).map_err(|error| unreadable(name, &error))?,
        digest: component.map_or("", Component::digest).to_owned(),
    };
    store.put(&row, component.map(Component::bytes)).await
}
