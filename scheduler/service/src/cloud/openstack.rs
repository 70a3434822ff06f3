//! An OpenStack as the API sees it: hosts and servers from the scheduler's memory, evacuations of
//! all schedulers from the ledger, decisions from the ledger's database.

use super::changes::{self, CloudSnapshot};
use super::{
    Answer, CloudSummary, CloudView, ListedServer, PricedFlavor, UnresolvedRequest, listing,
};
use crate::Tasks;
use crate::advice::RunningLife;
use crate::error::ServiceError;
use crate::region_actor::{SequencedEvent, not_read};
use ebbtide_engine::{CloudTotals, HostSummary, class_totals, sum_inventories};
use ebbtide_model::{
    Aggregate, Decision, DecisionId, Evacuation, EvacuationId, Flavor, PastLife, Seconds, Server,
    ServerGroup, ServerId, names,
};
use ebbtide_nova_service::{CloudReader, NovaServiceError, WhatIfError};
use ebbtide_region::{RegionConfig, RegionError, RegionRecord};
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::{
    DecisionFilter, DecisionStore, EvacuationFilter, LifeFilter, LifeStore, MAX_PAGE, PriceFilter,
    PriceStore, ServerFilter, StoreConfig,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OnceCell, broadcast};

/// Number of events that a slow watcher may lag behind.
const WATCH_BACKLOG: usize = 16_384;
/// How often changes are looked for while there are watchers. Nova's databases are polled once a
/// second, too.
const LOOK: Duration = Duration::from_secs(1);
/// Decisions of so long ago are looked at for watchers: they are recorded after their answers.
const RECENT: Seconds = Seconds(60);
/// How often past lives are looked for without a question. Operators archive rows after days.
const LIVES: Duration = Duration::from_secs(300);
/// How long a call waits for a look at past lives.
const LIVES_LIMIT: Duration = Duration::from_secs(5);

/// The view of an OpenStack.
pub(crate) struct OpenStackView {
    reader: CloudReader,
    decisions: RecordedDecisions,
    events: broadcast::Sender<SequencedEvent>,
}

/// The tables of decisions in the ledger's database, opened by the first question.
struct RecordedDecisions {
    /// `None`: there is no ledger, so no decision is recorded.
    config: Option<StoreConfig>,
    opened: OnceCell<DecisionStore>,
}

impl RecordedDecisions {
    async fn open(&self) -> Result<Option<&DecisionStore>, ServiceError> {
        let Some(config) = &self.config else {
            return Ok(None);
        };
        let open = || async { DecisionStore::open(config).await.map_err(|e| not_read(&e)) };
        self.opened.get_or_try_init(open).await.map(Some)
    }
}

impl OpenStackView {
    /// The view of a running scheduler; `ledger` is the database of the ledger.
    pub(crate) fn new(reader: CloudReader, ledger: Option<StoreConfig>) -> Self {
        Self {
            reader,
            decisions: RecordedDecisions {
                config: ledger,
                opened: OnceCell::new(),
            },
            events: broadcast::channel(WATCH_BACKLOG).0,
        }
    }

    /// What reads the cloud.
    pub(super) fn reader(&self) -> &CloudReader {
        &self.reader
    }

    /// Looks for changes while there are watchers, and tells them.
    pub(crate) fn follow(self: &Arc<Self>, tasks: &Tasks) {
        let (view, stop) = (Arc::clone(self), tasks.stop().clone());
        tasks.spawn("changes", async move {
            let mut before = None;
            let mut sequence = 0;
            while pause(&stop, LOOK).await {
                if view.events.receiver_count() == 0 {
                    before = None;
                    continue;
                }
                match view.look().await {
                    Ok(after) => {
                        if let Some(before) = &before {
                            view.tell(before, &after, &mut sequence);
                        }
                        before = Some(after);
                    }
                    Err(error) => tracing::warn!(code = error.code(), "no events: {error}"),
                }
            }
        });
    }

    fn tell(&self, before: &CloudSnapshot, after: &CloudSnapshot, sequence: &mut u64) {
        let at = clock::now();
        for event in changes::events(before, after, at) {
            *sequence += 1;
            let told = SequencedEvent {
                at,
                sequence: *sequence,
                event,
            };
            // The last watcher may have left meanwhile.
            let _ = self.events.send(told);
        }
    }

    /// Looks for past lives from time to time, so that those of a server are recorded before the
    /// operator archives its rows, and the first question finds them.
    pub(crate) fn follow_lives(self: &Arc<Self>, tasks: &Tasks) {
        let (view, stop) = (Arc::clone(self), tasks.stop().clone());
        tasks.spawn("lives", async move {
            loop {
                if let Err(error) = view.recorded_lives().await {
                    tracing::warn!(code = error.code(), "past lives are not recorded: {error}");
                }
                if !pause(&stop, LIVES).await {
                    break;
                }
            }
        });
    }

    /// Where past lives are, with all that have ended by now. `None` without a ledger.
    async fn recorded_lives(&self) -> Result<Option<LifeStore>, ServiceError> {
        let Some(store) = self.decisions.open().await? else {
            return Ok(None);
        };
        let lives = store.lives();
        let recorded = self.reader.record_lives(&lives).await;
        recorded.map_err(|error| unread(&error))?;
        Ok(Some(lives))
    }

    /// The same for a call, which does not wait for the whole history of a large cloud: then it
    /// gets what is recorded so far.
    async fn lives_by_now(&self) -> Result<Option<LifeStore>, ServiceError> {
        match tokio::time::timeout(LIVES_LIMIT, self.recorded_lives()).await {
            Ok(recorded) => recorded,
            Err(_) => Ok(self.decisions.open().await?.map(DecisionStore::lives)),
        }
    }

    /// Where prices are. `None` without a ledger.
    pub(super) async fn price_store(&self) -> Result<Option<PriceStore>, ServiceError> {
        let store = self.decisions.open().await?;
        Ok(store.map(DecisionStore::prices))
    }

    /// What is read, as Nova's databases are now: a scheduler without requests would answer from
    /// what the last one saw.
    async fn current(&self) -> &CloudReader {
        self.reader.freshen().await;
        &self.reader
    }

    async fn look(&self) -> Result<CloudSnapshot, ServiceError> {
        let reader = self.current().await;
        let evacuations = reader.evacuations(true).await;
        let evacuations = evacuations.map_err(|error| unread(&error))?;
        let servers = self.listed(reader.servers()).await?;
        let recent = DecisionFilter {
            from: Some(clock::now().minus(RECENT)),
            limit: MAX_PAGE,
            ..DecisionFilter::default()
        };
        let decisions = self.decisions(&recent).await?.into_iter();
        let nodes = reader.hosts().into_iter();
        Ok(CloudSnapshot {
            servers: servers
                .into_iter()
                .map(|listed| (listed.server.id, listed.server))
                .collect(),
            evacuations: evacuations.into_iter().map(|e| (e.id, e)).collect(),
            decisions: decisions.map(|decision| (decision.id, decision)).collect(),
            hosts: nodes
                .map(|node| (node.host.name.clone(), (node.host, node.health)))
                .collect(),
        })
    }

    /// Evacuations by victim; of several of one victim the one that is under way.
    async fn by_victim(&self) -> Result<HashMap<ServerId, Evacuation>, ServiceError> {
        let all = self.reader.evacuations(false).await;
        let all = all.map_err(|error| unread(&error))?;
        Ok(all.into_iter().map(|e| (e.victim_id, e)).collect())
    }

    async fn listed(&self, servers: Vec<Server>) -> Result<Vec<ListedServer>, ServiceError> {
        let mut leaving = self.by_victim().await?;
        let with = |mut server: Server| {
            let evacuation = leaving.remove(&server.id);
            server.evacuation_id = evacuation.as_ref().map(|e| e.id);
            ListedServer { server, evacuation }
        };
        Ok(servers.into_iter().map(with).collect())
    }
}

pub(super) fn unread(error: &NovaServiceError) -> ServiceError {
    ServiceError::NotRead {
        code: error.code(),
        message: error.to_string(),
        passing: error.is_passing(),
    }
}

/// What an answer does not know without image properties.
const NO_IMAGE: &str = "EB-SERVICE-015: no image properties were given, so this is the answer for \
     an image without any; Glance has those of an image";

fn unanswered(error: WhatIfError) -> ServiceError {
    match error {
        WhatIfError::NoFlavor(name) => ServiceError::NotFound {
            what: "flavor",
            name,
            next: "`openstack flavor list` shows those that the project may use",
        },
        WhatIfError::NoGroup(name) => ServiceError::NotFound {
            what: "server group",
            name,
            next: "`openstack server group list` shows those of the project",
        },
        WhatIfError::Field { field, problem } => ServiceError::Field { field, problem },
        WhatIfError::Unknown(problem) => ServiceError::NotAnswerable(problem),
        WhatIfError::Cloud(error) => unread(&error),
    }
}

impl CloudView for OpenStackView {
    fn summary(&self) -> Answer<'_, CloudSummary> {
        Box::pin(async move {
            let reader = self.current().await;
            let nodes = reader.hosts();
            let evacuations = reader.evacuations(false).await;
            let mut servers = BTreeMap::new();
            for server in reader.servers() {
                *servers.entry(server.status.as_str()).or_default() += 1;
            }
            let database = self.decisions.open().await?;
            Ok(CloudSummary {
                totals: CloudTotals {
                    hosts: CloudTotals::by_health(nodes.iter().map(|node| node.health)),
                    servers,
                    totals: class_totals(&nodes),
                    inventories: sum_inventories(nodes.iter().map(|node| &node.host)),
                    evacuations: evacuations.map_err(|error| unread(&error))?.len(),
                    contested: 0,
                },
                // Nova's own order of hosts; victims only where no host has room.
                policy: "nova".to_owned(),
                cost_module: self.reader.cost_module(),
                bus: "amqp".to_owned(),
                bus_connected: self.reader.bus_is_ready(),
                database: database
                    .map_or_else(String::new, |store| store.backend().as_str().to_owned()),
            })
        })
    }

    fn hosts(&self) -> Answer<'_, Vec<HostSummary>> {
        Box::pin(async move { Ok(self.current().await.hosts()) })
    }

    fn host<'a>(&'a self, name: &'a str) -> Answer<'a, Option<(HostSummary, Vec<ListedServer>)>> {
        Box::pin(async move {
            let reader = self.current().await;
            let mut nodes = reader.hosts().into_iter();
            let Some(node) = nodes.find(|node| node.host.name == name) else {
                return Ok(None);
            };
            let mut servers = reader.servers();
            servers.retain(|server| server.host.as_deref() == Some(name));
            Ok(Some((node, self.listed(servers).await?)))
        })
    }

    fn server(&self, id: ServerId) -> Answer<'_, Option<ListedServer>> {
        Box::pin(async move {
            let found = self.current().await.server(id).into_iter().collect();
            Ok(self.listed(found).await?.pop())
        })
    }

    fn server_named<'a>(&'a self, name: &'a str) -> Answer<'a, ListedServer> {
        Box::pin(async move {
            let mut found = self.current().await.servers();
            found.retain(|server| server.name == name);
            let name = names::shorten(name);
            let error = match found.len() {
                1 => None,
                0 => Some(RegionError::NotFound {
                    what: "server",
                    name,
                    next: "`ebbtide server list` shows those that there are",
                }),
                count => Some(RegionError::Ambiguous {
                    what: "servers",
                    name,
                    count,
                }),
            };
            let listed = self.listed(found).await?.pop();
            match (error, listed) {
                (None, Some(listed)) => Ok(listed),
                (error, _) => Err(error.map_or(ServiceError::Stopping, ServiceError::Region)),
            }
        })
    }

    fn servers<'a>(&'a self, filter: &'a ServerFilter) -> Answer<'a, Vec<ListedServer>> {
        Box::pin(async move {
            let all = self.listed(self.current().await.servers()).await?;
            Ok(listing::servers(all, filter))
        })
    }

    fn evacuation(&self, id: EvacuationId) -> Answer<'_, Option<Evacuation>> {
        Box::pin(async move {
            let all = self.reader.evacuations(true).await;
            let mut all = all.map_err(|error| unread(&error))?.into_iter();
            Ok(all.find(|evacuation| evacuation.id == id))
        })
    }

    fn evacuations<'a>(&'a self, filter: &'a EvacuationFilter) -> Answer<'a, Vec<Evacuation>> {
        Box::pin(async move {
            let all = self.reader.evacuations(!filter.active_only).await;
            listing::evacuations(all.map_err(|error| unread(&error))?, filter)
        })
    }

    fn groups(&self) -> Answer<'_, Vec<ServerGroup>> {
        Box::pin(async move {
            let groups = self.reader.groups().await;
            groups.map_err(|error| unread(&error))
        })
    }

    fn aggregates(&self) -> Answer<'_, Vec<Aggregate>> {
        Box::pin(async move { Ok(self.reader.aggregates()) })
    }

    fn flavors<'a>(&'a self, projects: Option<&'a [String]>) -> Answer<'a, Vec<Flavor>> {
        Box::pin(async move { self.reader.flavors(projects).await.map_err(|e| unread(&e)) })
    }

    fn flavor<'a>(&'a self, name: &'a str, projects: Option<&'a [String]>) -> Answer<'a, Flavor> {
        Box::pin(async move { self.reader.flavor(name, projects).await.map_err(unanswered) })
    }

    fn flavor_and_group<'a>(
        &'a self,
        _flavor: &'a str,
        _group: &'a str,
    ) -> Answer<'a, (Flavor, Option<ServerGroup>)> {
        Box::pin(async move {
            let command = "openstack flavor show FLAVOR";
            Err(ServiceError::OpenStackCommand { command })
        })
    }

    fn priced_flavor<'a>(
        &'a self,
        name: &'a str,
        projects: Option<&'a [String]>,
        changes: u32,
    ) -> Answer<'a, PricedFlavor> {
        Box::pin(async move {
            let flavor = self.reader.flavor(name, projects).await;
            let flavor = flavor.map_err(unanswered)?;
            flavor.properties().map_err(RegionError::from)?;
            let filter = PriceFilter {
                flavor: Some(flavor.name.clone()),
                limit: changes,
                ..PriceFilter::default()
            };
            let changes = match self.price_store().await? {
                Some(store) => store.prices(&filter).await.map_err(|e| not_read(&e))?,
                None => Vec::new(),
            };
            Ok(PricedFlavor {
                price: self.reader.price(&flavor),
                changes,
                flavor,
            })
        })
    }

    fn lives<'a>(&'a self, filter: &'a LifeFilter) -> Answer<'a, Vec<PastLife>> {
        Box::pin(async move {
            // A page that continues a list is of the lives that were known at its beginning.
            let lives = match filter.marker {
                None => self.lives_by_now().await?,
                Some(_) => self.decisions.open().await?.map(DecisionStore::lives),
            };
            match lives {
                Some(lives) => lives.lives(filter).await.map_err(|e| not_read(&e)),
                None => Ok(Vec::new()),
            }
        })
    }

    fn running_lives<'a>(&'a self, flavor: Option<&'a str>) -> Answer<'a, Vec<RunningLife>> {
        Box::pin(async move {
            let running = self.current().await.running_lives(flavor).await;
            let running = running.map_err(|error| unread(&error))?.into_iter();
            Ok(running
                .filter_map(|(server, began)| RunningLife::new(&server, began))
                .collect())
        })
    }

    fn decision(&self, id: DecisionId) -> Answer<'_, Option<Decision>> {
        Box::pin(async move {
            match self.decisions.open().await? {
                Some(store) => store.decision(id).await.map_err(|e| not_read(&e)),
                None => Ok(None),
            }
        })
    }

    fn decision_for_server(&self, id: ServerId) -> Answer<'_, Option<Decision>> {
        Box::pin(async move {
            match self.decisions.open().await? {
                Some(store) => {
                    let found = store.decision_for_server(id).await;
                    found.map_err(|e| not_read(&e))
                }
                None => Ok(None),
            }
        })
    }

    fn decisions<'a>(&'a self, filter: &'a DecisionFilter) -> Answer<'a, Vec<Decision>> {
        Box::pin(async move {
            match self.decisions.open().await? {
                Some(store) => store.decisions(filter).await.map_err(|e| not_read(&e)),
                None => Ok(Vec::new()),
            }
        })
    }

    fn what_if(&self, unresolved: UnresolvedRequest) -> Answer<'_, (Decision, Vec<String>)> {
        Box::pin(async move {
            unresolved.check()?;
            let wanted = unresolved.wanted;
            let decision = self.reader.what_if(&wanted).await;
            let decision = decision.map_err(unanswered)?;
            let notices = wanted
                .knows_no_image_properties()
                .then(|| NO_IMAGE.to_owned());
            Ok((decision, notices.into_iter().collect()))
        })
    }

    fn record(&self) -> Answer<'_, RegionRecord> {
        Box::pin(async move {
            let recorded = self.reader.record().await;
            let recorded = recorded.map_err(|error| unread(&error))?;
            let longest = Seconds(24 * 3600);
            let config = RegionConfig {
                default_grace_seconds: recorded.grace,
                default_protected_seconds: recorded.protected,
                host_down_seconds: recorded.down_after.clamp(Seconds(1), longest),
                ..RegionConfig::default()
            };
            let (at, engine) = (recorded.at, recorded.engine);
            Ok(RegionRecord::new(at, engine, config, recorded.state))
        })
    }

    fn events(&self) -> broadcast::Receiver<SequencedEvent> {
        self.events.subscribe()
    }
}
