//! Reads what a reconciliation compares.

use crate::audit::{self, AuditSnapshot, AuditSources, WholeHolding};
use crate::error::NovaServiceError;
use crate::reclaims::ReclaimRecord;
use ebbtide_model::Timestamp;
use ebbtide_nova_db::{CELL0_UUID, NovaDb};
use ebbtide_store::ledger::{Ledger, ReclaimRow};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Silence after which a scheduler counts as stopped: it writes a heartbeat every two seconds.
const STOPPED_MILLIS: i64 = 15_000;

/// A restored ledger, Placement and Nova.
#[derive(Debug, Clone, Default)]
pub(super) struct RestoredLedger {
    pub(super) picture: AuditSnapshot,
    /// Schedulers that have registered although the ledger is held: of an earlier version.
    pub(super) active: Vec<String>,
    /// Hosts that owners had taken back, with the version of the row.
    pub(super) reclaims: Vec<(ReclaimRow, ReclaimRecord)>,
    /// By host: why its nova-compute is disabled; `None`: it is enabled.
    pub(super) computes: BTreeMap<String, Option<String>>,
    /// Evacuated servers that the ledger keeps for their return.
    pub(super) comebacks: BTreeSet<Uuid>,
    /// Consumers on hosts of lost swaps whose servers are on no host and are not being built, and
    /// what they hold.
    pub(super) abandoned: BTreeMap<Uuid, WholeHolding>,
    /// Consumers on these hosts whose servers are being built.
    pub(super) building: BTreeSet<Uuid>,
    /// When victims that Nova does not have any more have ended, as far as it knows.
    pub(super) ended: BTreeMap<Uuid, Timestamp>,
}

pub(super) async fn read(
    ledger: &Ledger,
    sources: &AuditSources,
    progress: impl Fn(usize, usize),
) -> Result<RestoredLedger, NovaServiceError> {
    let owners = ledger.owners().await?;
    let active = owners.into_iter();
    let active = active.filter(|seen| seen.silent_millis < STOPPED_MILLIS);
    let active = active.map(|seen| seen.owner.name).collect();
    let comebacks = ledger.comebacks().await?;
    let reclaims = ledger.reclaims().await?.into_iter();
    let reclaims = reclaims.filter_map(|row| {
        let record = ReclaimRecord::read(&row)?;
        Some((row, record))
    });
    let reclaims = reclaims.collect();
    let picture = sources.read(progress).await?;
    let ended = ended(&sources.nova, &picture).await?;
    let (abandoned, building) = newcomers(sources, &picture).await?;
    Ok(RestoredLedger {
        active,
        reclaims,
        computes: computes(&sources.nova).await?,
        comebacks: comebacks.into_iter().map(|row| row.server).collect(),
        abandoned,
        building,
        ended,
        picture,
    })
}

async fn computes(nova: &NovaDb) -> Result<BTreeMap<String, Option<String>>, NovaServiceError> {
    let mut computes = BTreeMap::new();
    for cell in nova.enabled_cells() {
        for found in cell.services().await? {
            if found.binary == "nova-compute" {
                let reason = found.service.disabled_reason.unwrap_or_default();
                computes.insert(found.host, found.service.disabled.then_some(reason));
            }
        }
    }
    Ok(computes)
}

/// Nova's last write to the rows of victims that were deleted.
async fn ended(
    nova: &NovaDb,
    picture: &AuditSnapshot,
) -> Result<BTreeMap<Uuid, Timestamp>, NovaServiceError> {
    let records = picture.rows.iter().filter_map(|row| row.record.as_ref());
    let victims = records.flat_map(|record| record.victims.iter().map(|v| v.server.0));
    let gone = victims.filter(|victim| !picture.servers.contains_key(victim));
    let gone: BTreeSet<Uuid> = gone.collect();
    let mut ended = BTreeMap::new();
    for victim in gone {
        let uuid = victim.to_string();
        let cell = nova.instance_cell(&uuid).await?;
        let Some(cell) = cell.filter(|cell| cell != CELL0_UUID) else {
            continue;
        };
        let row = nova.cell(&cell)?.instance(&uuid).await?;
        if let Some(at) = row.filter(|row| row.deleted).and_then(|row| row.updated_at) {
            ended.insert(victim, Timestamp::from_millis(at / 1000));
        }
    }
    Ok(ended)
}

/// Consumers beside victims of lost swaps that are nothing which the picture knows: servers that no
/// host will get, with what they hold, and servers that are being built.
async fn newcomers(
    sources: &AuditSources,
    picture: &AuditSnapshot,
) -> Result<(BTreeMap<Uuid, WholeHolding>, BTreeSet<Uuid>), NovaServiceError> {
    let rows = picture.rows.iter();
    let named = rows.flat_map(|row| row.newcomers.iter().chain(&row.victims));
    let named: BTreeSet<&Uuid> = named.collect();
    let shortages = audit::shortages(picture);
    let beside = shortages
        .iter()
        .flat_map(|found| found.host.consumers.keys());
    let unknown: BTreeSet<Uuid> = beside
        .filter(|consumer| {
            !picture.servers.contains_key(consumer)
                && !picture.migrations.contains_key(consumer)
                && !named.contains(consumer)
        })
        .copied()
        .collect();
    let (mut abandoned, mut building) = (BTreeMap::new(), BTreeSet::new());
    for consumer in unknown {
        match newcomer(&sources.nova, consumer).await? {
            NewcomerState::OnNoHost => {
                let (_, holds) = audit::read_whole(&sources.placement, consumer).await?;
                abandoned.insert(consumer, holds);
            }
            NewcomerState::Building => {
                building.insert(consumer);
            }
            NewcomerState::Unknown => {}
        }
    }
    Ok((abandoned, building))
}

/// What Nova says of a consumer.
enum NewcomerState {
    /// It is buried in cell0, or deleted.
    OnNoHost,
    Building,
    /// Other services have consumers, too.
    Unknown,
}

async fn newcomer(nova: &NovaDb, consumer: Uuid) -> Result<NewcomerState, NovaServiceError> {
    let uuid = consumer.to_string();
    // The build request goes only after the server is in its cell.
    if nova.build_request_exists(&uuid).await? {
        return Ok(NewcomerState::Building);
    }
    let Some(cell) = nova.instance_cell(&uuid).await? else {
        return Ok(NewcomerState::Unknown);
    };
    if cell == CELL0_UUID {
        return Ok(NewcomerState::OnNoHost);
    }
    let row = nova.cell(&cell)?.instance(&uuid).await?;
    Ok(match row {
        None => NewcomerState::Unknown,
        Some(row) if row.deleted => NewcomerState::OnNoHost,
        // It has come to its cell since the picture was taken.
        Some(_) => NewcomerState::Building,
    })
}
