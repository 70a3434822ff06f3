//! Reads Placement, Nova's databases and the ledger.

use super::compare::{
    Amounts, AuditServer, AuditSnapshot, Host, Migration, PreemptionRow, UnreadableRow,
};
use super::shortage::{self, CpuKind, PreemptibleServer, WholeHolding};
use super::tables;
use crate::comebacks::RetainedServer;
use crate::configure;
use crate::error::NovaServiceError;
use crate::upgrade_check::agent_queues;
use ebbtide_bus::QueueUse;
use ebbtide_model::record::RestoreMark;
use ebbtide_model::{BudgetScope, GroupId, Timestamp};
use ebbtide_nova_cloud::{least_resources, preemptible_properties};
use ebbtide_nova_db::{Instance, InstanceDetail, InstanceFlavor, NovaDb};
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_openstack::{Placement, Session};
use ebbtide_store::ledger::Ledger;
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

/// Providers that are read at the same time.
const AT_ONCE: usize = 4;
/// A scheduler without a heartbeat for this long counts as dead.
const SILENT_MILLIS: i64 = 60_000;

/// Reads all three. `progress` gets the number of compute nodes that were read, and the total.
///
/// # Errors
/// Any source that is unavailable or refuses access: an audit of incomplete data would report false
/// disagreements.
pub async fn read(
    conf: &NovaConf,
    progress: impl Fn(usize, usize),
) -> Result<AuditSnapshot, NovaServiceError> {
    let sources = AuditSources::open(conf).await?;
    let picture = async {
        let mut picture = sources.read(progress).await?;
        if let Some(config) = configure::ledger_database(conf)? {
            picture
                .unreadable
                .extend(tables::unreadable(&config).await?);
        }
        picture.removed_agents = removed_agents(conf, &sources.nova).await?;
        Ok(picture)
    };
    let picture = picture.await;
    sources.close().await;
    picture
}

/// The three, open.
pub(crate) struct AuditSources {
    /// `None`: none is configured.
    pub(crate) ledger: Option<Ledger>,
    pub(crate) nova: NovaDb,
    pub(crate) placement: Placement,
}

impl AuditSources {
    pub(crate) async fn open(conf: &NovaConf) -> Result<Self, NovaServiceError> {
        let ledger = match configure::ledger_database(conf)? {
            Some(config) => Some(Ledger::open(&config).await?),
            None => None,
        };
        let nova = NovaDb::connect(&configure::databases(conf)?).await?;
        let (auth, session, adapter) = configure::placement(conf)?;
        Ok(Self {
            ledger,
            nova,
            placement: Placement::new(Session::new(auth, session)?, adapter)?,
        })
    }

    pub(crate) async fn close(self) {
        if let Some(ledger) = self.ledger {
            ledger.close().await;
        }
        self.nova.close().await;
    }

    /// Everything but what only nova.conf names: other tables, and the broker.
    pub(crate) async fn read(
        &self,
        progress: impl Fn(usize, usize),
    ) -> Result<AuditSnapshot, NovaServiceError> {
        // The ledger comes first: a preemption that it does not show yet is younger than the other
        // reads, and appears there as a task of its server.
        let LedgerPicture {
            rows,
            groups,
            unreadable,
            retained,
            restored,
        } = match &self.ledger {
            Some(ledger) => read_ledger(ledger).await?,
            None => LedgerPicture::default(),
        };
        let nova = &self.nova;
        nova.cells().await?;
        let (mut picture, nodes) = nova_side(nova).await?;
        picture.rows = rows;
        picture.unreadable = unreadable;
        picture.retained = retained;
        picture.restored = restored;
        for group in groups {
            let exists = nova.group(&group.to_string()).await?.is_some();
            picture.budgeted_groups.insert(group, exists);
        }
        let (all, mut done) = (nodes.len(), 0);
        let mut reads = stream::iter(nodes)
            .map(|(provider, name)| read_host(&self.placement, provider, name))
            .buffer_unordered(AT_ONCE);
        while let Some(read) = reads.try_next().await? {
            done += 1;
            progress(done, all);
            if let Some((provider, host)) = read {
                picture.hosts.insert(provider, host);
            }
        }
        let suspects = shortage::suspects(&picture);
        let mut reads = stream::iter(suspects)
            .map(|server| read_whole(&self.placement, server))
            .buffer_unordered(AT_ONCE);
        while let Some((server, holding)) = reads.try_next().await? {
            picture.whole.insert(server, holding);
        }
        Ok(picture)
    }
}

/// The queues that agents of removed hosts still have. None if the broker cannot be asked: an
/// audit without a login to it says less.
async fn removed_agents(
    conf: &NovaConf,
    nova: &NovaDb,
) -> Result<BTreeMap<String, QueueUse>, NovaServiceError> {
    let (mut removed, mut live) = (BTreeSet::new(), BTreeSet::new());
    for cell in nova.enabled_cells() {
        removed.extend(cell.removed_hosts().await?);
        live.extend(cell.services().await?.into_iter().map(|found| found.host));
    }
    let hosts: Vec<String> = removed.difference(&live).cloned().collect();
    if hosts.is_empty() || conf.ebbtide.connection.is_none() {
        return Ok(BTreeMap::new());
    }
    let queues = agent_queues(conf, hosts).await.unwrap_or_else(|problem| {
        tracing::warn!("queues of removed hosts are not audited: {problem}");
        BTreeMap::new()
    });
    let left = queues.into_iter();
    Ok(left
        .filter_map(|(host, used)| Some((host, used?)))
        .collect())
}

/// What the ledger holds.
#[derive(Default)]
struct LedgerPicture {
    /// The open preemptions.
    rows: Vec<PreemptionRow>,
    /// Server groups that have a disruption budget.
    groups: BTreeSet<GroupId>,
    /// Evacuated servers that are kept for their return.
    retained: BTreeSet<Uuid>,
    /// Rows of servers that come back which no scheduler can read.
    unreadable: Vec<UnreadableRow>,
    /// It was restored from a backup and is not reconciled yet.
    restored: Option<RestoreMark>,
}

async fn read_ledger(ledger: &Ledger) -> Result<LedgerPicture, NovaServiceError> {
    let restored = ledger.restore_mark().await?;
    let owners = ledger.owners().await?;
    let open = ledger.open_rows().await?;
    let budgets = ledger.budgets().await?;
    let kept = ledger.comebacks().await?;
    let retained = kept.iter().map(|row| row.server).collect();
    let unreadable = kept.into_iter().filter_map(|row| {
        let read = serde_json::from_value::<RetainedServer>(row.document);
        read.err().map(|error| UnreadableRow {
            table: "nova_comebacks".to_owned(),
            key: row.server.to_string(),
            reason: error.to_string(),
        })
    });
    let groups = budgets.iter().filter_map(|known| match known.budget.scope {
        BudgetScope::Group(group) => Some(group),
        BudgetScope::Project(_) => None,
    });
    let groups = groups.collect();
    let now = ebbtide_runtime::clock::now();
    let rows = open.into_iter().map(|row| PreemptionRow {
        id: row.id,
        version: row.version,
        request_id: row.request_id,
        is_driven: owners
            .iter()
            .any(|seen| seen.owner == row.owner && seen.silent_millis < SILENT_MILLIS),
        owner: row.owner.name,
        quiet_seconds: now.millis_since(Timestamp::from_millis(row.updated_at)) / 1000,
        state: row.state,
        victims: row.victims.into_iter().collect(),
        newcomers: row.newcomers.into_iter().collect(),
        record: serde_json::from_value(row.document).ok(),
    });
    Ok(LedgerPicture {
        rows: rows.collect(),
        groups,
        retained,
        unreadable: unreadable.collect(),
        restored,
    })
}

/// Servers and migrations, and the compute nodes by provider.
async fn nova_side(
    nova: &NovaDb,
) -> Result<(AuditSnapshot, Vec<(Uuid, String)>), NovaServiceError> {
    let mut picture = AuditSnapshot::default();
    let mut nodes = Vec::new();
    for cell in nova.enabled_cells() {
        let mut by_name: BTreeMap<(String, String), Uuid> = BTreeMap::new();
        for node in cell.compute_nodes().await? {
            let uuid = node
                .uuid
                .as_deref()
                .and_then(|uuid| Uuid::parse_str(uuid).ok());
            if let (Some(uuid), Some(host)) = (uuid, node.host) {
                nodes.push((uuid, host.clone()));
                by_name.insert((host, node.nodename.unwrap_or_default()), uuid);
            }
        }
        let servers = &mut picture.servers;
        cell.instances(InstanceDetail::default(), |batch| {
            for instance in batch {
                let Ok(uuid) = Uuid::parse_str(&instance.uuid) else {
                    continue;
                };
                let runs_on = runs_on(&instance);
                let (due, preemptible) = (due(&instance), preemptible(&instance));
                let vm_state = instance.vm_state.unwrap_or_default();
                let home = instance.host.zip(instance.node);
                let provider = home.and_then(|home| by_name.get(&home).copied());
                let offloaded = vm_state == "shelved_offloaded" || vm_state == "building";
                let server = AuditServer {
                    name: instance.display_name.unwrap_or_default(),
                    runs_on,
                    due,
                    preemptible,
                    holds_room: provider.is_some() && !offloaded,
                    provider,
                    vm_state,
                    task_state: instance.task_state,
                };
                servers.insert(uuid, server);
            }
        })
        .await?;
        for (migration, server) in cell.migrations_under_way().await? {
            let parsed = Uuid::parse_str(&migration)
                .ok()
                .zip(Uuid::parse_str(&server).ok());
            if let Some((migration, server)) = parsed {
                picture.migrations.insert(migration, Migration { server });
            }
        }
    }
    Ok((picture, nodes))
}

/// What a server uses of its host, from its row, as its compute accounts for it.
fn runs_on(instance: &Instance) -> Amounts {
    let vm_state = instance.vm_state.as_deref().unwrap_or_default();
    let amount = |n: i64| u64::try_from(n).unwrap_or(0);
    let root = match instance.boots_from_volume {
        true => 0,
        false => amount(instance.root_gb),
    };
    let disk = root.saturating_add(amount(instance.ephemeral_gb));
    let mut takes = Amounts::from([("DISK_GB".to_owned(), disk)]);
    if !matches!(
        vm_state,
        "stopped" | "suspended" | "soft-delete" | "shelved"
    ) {
        takes.insert("VCPU".to_owned(), amount(instance.vcpus));
        takes.insert("MEMORY_MB".to_owned(), amount(instance.memory_mb));
    }
    if matches!(vm_state, "error" | "shelved_offloaded" | "deleted") {
        // The rest of its usage is unknown.
        takes.clear();
    }
    takes.retain(|_, amount| *amount > 0);
    takes
}

/// What a server must hold, from the flavor that it carries. Nothing while a resize is under way:
/// then two flavors count.
fn due(instance: &Instance) -> Amounts {
    let settled = |f: &&Arc<InstanceFlavor>| f.old.is_none() && f.new.is_none();
    let flavor = instance.flavor.as_ref().filter(settled);
    flavor.map_or_else(Amounts::new, |flavor| {
        least_resources(&flavor.current, instance.boots_from_volume)
    })
}

fn preemptible(instance: &Instance) -> Option<PreemptibleServer> {
    let flavor = &instance.flavor.as_ref()?.current;
    let properties = preemptible_properties(flavor)?;
    let specs = flavor.extra_specs.as_ref();
    let policy = specs.and_then(|specs| specs.get("hw:cpu_policy"));
    let cpus = match policy.map(String::as_str) {
        Some("dedicated") => CpuKind::Dedicated,
        Some("shared") => CpuKind::Shared,
        // Only a server with a topology has CPUs of its own.
        None if instance.numa_topology.is_none() => CpuKind::Shared,
        _ => CpuKind::Unclear,
    };
    let launched = instance.launched_at;
    Some(PreemptibleServer {
        flavor: flavor.name.clone(),
        behaviour: properties.interruption,
        grace: properties.grace,
        launched_at: launched.map(|micros| Timestamp::from_millis(micros / 1000)),
        project_id: instance.project_id.clone().unwrap_or_default(),
        user_id: instance.user_id.clone().unwrap_or_default(),
        cpus,
    })
}

/// All that a server holds, also at providers that are no compute node.
pub(crate) async fn read_whole(
    placement: &Placement,
    server: Uuid,
) -> Result<(Uuid, WholeHolding), NovaServiceError> {
    let held = placement.allocations(server).await?;
    let allocations = held.allocations.into_iter();
    let holding = WholeHolding {
        allocations: allocations.map(|(p, of)| (p, of.resources)).collect(),
        generation: held.consumer_generation.map(|generation| generation.0),
        project_id: held.project_id,
        user_id: held.user_id,
    };
    Ok((server, holding))
}

/// `None`: the provider does not exist in Placement; the compute creates it when it starts.
async fn read_host(
    placement: &Placement,
    provider: Uuid,
    name: String,
) -> Result<Option<(Uuid, Host)>, NovaServiceError> {
    let read = tokio::try_join!(
        placement.inventories(provider),
        placement.provider_allocations(provider)
    );
    let (inventories, allocations) = match read {
        Err(ebbtide_openstack::OpenStackError::NotFound { .. }) => return Ok(None),
        read => read?,
    };
    let capacity = inventories.inventories.into_iter().map(|(class, has)| {
        let stock = has.total.saturating_sub(has.reserved);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "as Placement does it; casts saturate, and NaN is 0"
        )]
        let capacity = (stock as f64 * has.allocation_ratio) as u64;
        (class, capacity)
    });
    let host = Host {
        name,
        capacity: capacity.collect(),
        consumers: allocations
            .consumers
            .into_iter()
            .map(|(uuid, has)| (uuid, has.resources))
            .collect(),
    };
    Ok(Some((provider, host)))
}
