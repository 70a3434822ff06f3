//! The account of the pool's servers: since when each runs, until when, at which prices.

use crate::journal::RecordFile;
use crate::pool::PoolOptions;
use ebbtide_burst::{BurstRecord, PoolServer, RecordEntry};
use ebbtide_runtime::clock::unix_millis;
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;
use std::collections::BTreeMap;

/// Writes down what is new of the servers. `own_price` is what an hour of the server of a node
/// costs where the cloud does not say, millionths; `came_up` says whether a server's node was up.
///
/// # Errors
/// Those of the cloud; [`ebbtide_burst::BurstError::Storage`].
pub async fn learn_servers(
    record_file: &mut RecordFile,
    pool: &PoolOptions<'_>,
    cloud: &ServerPool,
    listed: &[PoolServer],
    own_price: impl Fn(&str) -> u64,
    came_up: impl Fn(&str) -> bool,
) -> Result<(), CliError> {
    let mut all = listed.to_vec();
    let record = &record_file.record;
    let open = record.lives.iter().filter(|(_, life)| life.end.is_none());
    let missing = open.filter(|(id, _)| !listed.iter().any(|one| one.id == **id));
    for (id, _) in missing {
        // When it ended, and by whose will, is known to the cloud.
        all.extend(cloud.server(id).await?);
    }
    let is_new =
        |one: &PoolServer| one.launched_ms.is_some() && !record.lives.contains_key(&one.id);
    let prices = if listed.iter().any(is_new) {
        cloud.prices().await.unwrap_or_default()
    } else {
        BTreeMap::new()
    };
    let price = |one: &PoolServer| {
        let mut groups = pool.groups.iter();
        let group = groups.find(|group| group.nodes.contains(&one.node));
        let market = group.and_then(|group| prices.get(&group.flavor).copied());
        market
            .filter(|price| *price > 0)
            .unwrap_or_else(|| own_price(&one.node))
    };
    let now = unix_millis();
    let record = &mut record_file.record;
    let mut facts = record.learn_instances(now, &all, price, came_up);
    facts.extend(learn_hours(record, pool, cloud, now).await);
    Ok(record_file.write(&facts)?)
}

/// Looks up what hours cost that have begun: the price of that moment counts, by which the cloud
/// charges. Hours whose price cannot be had are asked for again at the next look.
async fn learn_hours(
    record: &mut BurstRecord,
    pool: &PoolOptions<'_>,
    cloud: &ServerPool,
    now: i64,
) -> Vec<RecordEntry> {
    let mut known = BTreeMap::new();
    let mut facts = Vec::new();
    for (id, node, begin) in record.unpriced(now, pool.hour) {
        let mut groups = pool.groups.iter();
        let Some(group) = groups.find(|group| group.nodes.contains(&node)) else {
            continue;
        };
        let key = (&group.flavor, begin);
        let hourly = match known.get(&key) {
            Some(hourly) => *hourly,
            None => match cloud.price_at(&group.flavor, begin).await {
                Ok(hourly) => hourly,
                Err(_) => break,
            },
        };
        known.insert(key, hourly);
        facts.extend(record.learn_price(now, &id, begin, hourly));
    }
    facts
}
