//! Servers of an OpenStack, over Nova's API with a tenant's rights. Notices and releases are keys
//! of a server's metadata, which works on every OpenStack whose computes have our agents. Prices
//! come from the service `preemption` if the catalog has it.

use crate::notices::{pool_server, seen};
use crate::order::{FoundServer, OrderError, OrderedServer, ServerOrder};
use crate::{group_of, names, prices};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ebbtide_burst::{BurstError, NodeGroup, OpenStackSettings, PoolServer, Status};
use ebbtide_client::{Credentials, Region};
use ebbtide_model::server_metadata::{NODE, ORDER, RELEASE};
use ebbtide_openstack::compute::{NamedFlavor, NewServer, Server, ServerFilter, ServerNetworks};
use ebbtide_openstack::{
    Compute, NamedResource, OpenStackError, RequestEffect, Session, SessionOptions, images_named,
    networks_named,
};
use ebbtide_os_cloud::{CloudConfig, CloudSelector, Environment, OsCloudError};
use ebbtide_runtime::clock;
use ebbtide_shell::cloud::{credentials_for, preemption_endpoint};
use ebbtide_shell::errors::CliError;
use std::collections::BTreeMap;
use time::Duration;
use time::format_description::well_known::Rfc3339;
use tokio::sync::OnceCell;
use uuid::Uuid;

/// Nova's limit for user data, characters of Base64 (`user_data` of `nova/objects/instance.py`).
const MAX_USER_DATA: usize = 65_535;
/// The variable that names clouds.yaml (openstacksdk, `os_client_config`).
const CONFIG_FILE: &str = "OS_CLIENT_CONFIG_FILE";
/// How long a deleted server is looked for. The controller asks within its next polls.
const DELETED_WITHIN: Duration = Duration::hours(24);

/// The servers of a project of an OpenStack.
#[derive(Debug)]
pub struct OpenStackPool {
    cloud: CloudConfig,
    session: Session,
    compute: Compute,
    /// The service `preemption`; `None` without one, and while it does not answer at the start.
    service: Option<Region>,
    settings: OpenStackSettings,
    groups: Vec<NodeGroup>,
    nodes: Vec<String>,
    /// What all new servers have in common.
    template: OnceCell<NewServer>,
    flavors: OnceCell<Vec<NamedFlavor>>,
}

impl OpenStackPool {
    /// Finds the cloud, and gets a token.
    ///
    /// # Errors
    /// [`CliError::OsCloud`]; [`BurstError::Setting`] if no cloud is named.
    pub(crate) async fn connect(
        settings: &OpenStackSettings,
        groups: Vec<NodeGroup>,
    ) -> Result<Self, CliError> {
        let environment = with_file(Environment::of_process(None), settings);
        let found = CloudConfig::find(&environment, wanted(settings))?;
        let cloud = found.ok_or_else(|| {
            setting(
                "openstack.cloud",
                "it is not there, and no OS_* variable names or describes a cloud".to_owned(),
            )
        })?;
        let failed = |error| OsCloudError::of_cloud(&cloud.name, error);
        let session = Session::new(cloud.auth.clone(), SessionOptions::new("ebbtide-batch"))
            .map_err(failed)?;
        let compute = Compute::new(session.clone(), cloud.compute.clone()).map_err(failed)?;
        let service = preemption_service(&cloud, &session).await;
        Ok(Self {
            cloud,
            session,
            compute,
            service,
            settings: settings.clone(),
            nodes: names(&groups),
            groups,
            template: OnceCell::new(),
            flavors: OnceCell::new(),
        })
    }

    fn failed(&self, error: OpenStackError) -> CliError {
        OsCloudError::of_cloud(&self.cloud.name, error).into()
    }

    pub(crate) async fn servers(&self) -> Result<Vec<PoolServer>, CliError> {
        let all = self.listed(&ServerFilter::default()).await?;
        let ours = all.iter().filter_map(|one| pool_server(one, &self.nodes));
        Ok(ours.filter(|one| one.status != Status::Gone).collect())
    }

    async fn listed(&self, filter: &ServerFilter) -> Result<Vec<Server>, CliError> {
        let all = self.compute.servers(filter).await;
        let all = all.map_err(|error| self.failed(error))?;
        // Nova shows neither name nor metadata of servers whose cell does not answer: nodes would
        // be taken for lost.
        if let Some(partial) = all.iter().find(|server| server.is_partial()) {
            return Err(self.failed(OpenStackError::Unavailable {
                service: "compute".to_owned(),
                what: "GET /servers/detail".to_owned(),
                problem: format!("the cell of server {} does not answer", partial.id),
                effect: RequestEffect::None,
            }));
        }
        Ok(all)
    }

    pub(crate) async fn server(&self, id: &str) -> Result<Option<PoolServer>, CliError> {
        let found = self.shown(uuid(id)?).await?;
        Ok(found.and_then(|server| pool_server(&server, &self.nodes)))
    }

    /// A server by its id, also one that is gone.
    async fn shown(&self, id: Uuid) -> Result<Option<Server>, CliError> {
        match self.compute.server(id).await {
            Ok(server) => return Ok(Some(server)),
            Err(OpenStackError::NotFound { .. }) => {}
            Err(error) => return Err(self.failed(error)),
        }
        let since = clock::utc() - DELETED_WITHIN;
        let filter = ServerFilter {
            changes_since: since.format(&Rfc3339).ok(),
            ..ServerFilter::default()
        };
        let changed = self.compute.servers(&filter).await;
        let changed = changed.map_err(|error| self.failed(error))?;
        Ok(changed.into_iter().find(|server| server.id == id))
    }

    /// A server by its own id or by that of its order, also one that is gone.
    pub(crate) async fn found(&self, id: &str) -> Result<Option<FoundServer>, CliError> {
        if let Some(server) = self.shown(uuid(id)?).await? {
            return Ok(Some(found(&server)));
        }
        let all = self.listed(&ServerFilter::default()).await?;
        let ordered = |server: &&Server| server.metadata.get(ORDER).is_some_and(|own| own == id);
        Ok(all.iter().find(ordered).map(found))
    }

    /// The servers with a name that are not gone.
    pub(crate) async fn named(&self, name: &str) -> Result<Vec<FoundServer>, CliError> {
        let all = self.listed(&ServerFilter::default()).await?;
        let named = all.iter().filter(|server| server.name == name);
        Ok(named.map(found).collect())
    }

    /// Creates a server with the order's id in its metadata. Nova decides on a host afterwards.
    pub(crate) async fn order(&self, order: &ServerOrder) -> Result<OrderedServer, OrderError> {
        let key = (ORDER.to_owned(), order.id.clone());
        self.build(order, key).await
    }

    /// Says that a server which has notice does not need the rest of its time. The agent ends the
    /// server, and says so to the scheduler.
    pub(crate) async fn release(&self, id: &str) -> Result<(), CliError> {
        let release = BTreeMap::from([(RELEASE.to_owned(), "now".to_owned())]);
        let set = self.compute.set_metadata(uuid(id)?, &release).await;
        set.map_err(|error| self.failed(error))
    }

    pub(crate) async fn verify(&self) -> Result<(), CliError> {
        let bare = Environment {
            folders: vec!["/etc/openstack".into()],
            ..Environment::default()
        };
        let bare = with_file(bare, &self.settings);
        if !matches!(
            CloudConfig::find(&bare, wanted(&self.settings)),
            Ok(Some(_))
        ) {
            let problem = "slurmctld starts its programs without environment, and they do not find the cloud: name the file here and the cloud in openstack.cloud, or let it be in /etc/openstack/clouds.yaml";
            return Err(setting("openstack.clouds_file", problem.to_owned()));
        }
        let known = self.template.get_or_try_init(|| self.template());
        known.await?;
        for group in &self.groups {
            self.flavor(&group.flavor).await?;
        }
        Ok(())
    }

    pub(crate) async fn create(&self, node: &str) -> Result<String, CliError> {
        let group = group_of(&self.groups, node)?;
        let order = ServerOrder {
            id: String::new(),
            name: node.to_owned(),
            flavor: group.flavor.clone(),
            max_price: group.max_price,
        };
        match self.build(&order, (NODE.to_owned(), node.to_owned())).await {
            Ok(made) => Ok(made.id),
            Err(OrderError::NoRoom(problem)) => Err(BurstError::NoInstance {
                node: node.to_owned(),
                problem,
            }
            .into()),
            Err(OrderError::Refused(error) | OrderError::Unknown(error)) => Err(error),
        }
    }

    /// Creates a server with this key in its metadata.
    async fn build(
        &self,
        order: &ServerOrder,
        key: (String, String),
    ) -> Result<OrderedServer, OrderError> {
        let template = self.template.get_or_try_init(|| self.template()).await;
        let template = template.map_err(not_made)?;
        let hints = order.max_price.map(|price| {
            let key = ebbtide_model::flavor::MAX_PRICE.to_owned();
            (key, price.to_string())
        });
        let new = NewServer {
            name: order.name.clone(),
            flavor: self.flavor(&order.flavor).await.map_err(not_made)?,
            hints: hints.into_iter().collect(),
            metadata: BTreeMap::from([key]),
            ..template.clone()
        };
        match self.compute.create(&new).await {
            Ok(id) => Ok(OrderedServer {
                id: id.to_string(),
                warning: None,
            }),
            Err(
                OpenStackError::Forbidden { text, .. }
                | OpenStackError::Refused { text, .. }
                | OpenStackError::Conflict { text, .. },
            ) => Err(OrderError::NoRoom(text)),
            Err(error) => Err(OrderError::Unknown(self.failed(error))),
        }
    }

    pub(crate) async fn give_back(&self, one: &PoolServer) -> Result<(), CliError> {
        if one.status == Status::Leaving {
            let release = BTreeMap::from([(RELEASE.to_owned(), "now".to_owned())]);
            match self.compute.set_metadata(uuid(&one.id)?, &release).await {
                Ok(()) => return Ok(()),
                // The evacuation may have ended a moment before.
                Err(OpenStackError::NotFound { .. } | OpenStackError::Conflict { .. }) => {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        self.delete(&one.id).await
    }

    pub(crate) async fn delete(&self, id: &str) -> Result<(), CliError> {
        match self.compute.delete(uuid(id)?).await {
            Ok(_) | Err(OpenStackError::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    pub(crate) async fn prices(&self) -> Result<BTreeMap<String, u64>, CliError> {
        match &self.service {
            Some(service) => prices::hourly(service).await,
            None => Ok(BTreeMap::new()),
        }
    }

    pub(crate) async fn price_at(&self, flavor: &str, at: i64) -> Result<Option<u64>, CliError> {
        match &self.service {
            Some(service) => prices::hourly_at(service, flavor, at).await,
            None => Ok(None),
        }
    }

    /// What all servers have in common. Names are looked up once.
    async fn template(&self) -> Result<NewServer, CliError> {
        let own = &self.settings;
        Ok(NewServer {
            image: self.image().await?,
            networks: self.networks().await?,
            user_data: own.user_data.as_deref().map(user_data).transpose()?,
            availability_zone: own.zone.clone(),
            key_name: own.key_name.clone(),
            security_groups: own.security_groups.clone(),
            ..NewServer::default()
        })
    }

    /// The id of a flavor with this name or id.
    async fn flavor(&self, wanted: &str) -> Result<String, CliError> {
        let flavors = async || {
            self.compute
                .flavors()
                .await
                .map_err(|error| self.failed(error))
        };
        let flavors = self.flavors.get_or_try_init(flavors).await?;
        let named = flavors.iter().find(|flavor| flavor.name == wanted);
        let found = named.or_else(|| flavors.iter().find(|flavor| flavor.id == wanted));
        let missing = || {
            let problem = format!("there is no flavor {wanted:?}; see `openstack flavor list`");
            setting("flavor", problem)
        };
        Ok(found.ok_or_else(missing)?.id.clone())
    }

    async fn image(&self) -> Result<Uuid, CliError> {
        let wanted = &self.settings.image;
        if let Ok(id) = wanted.parse() {
            return Ok(id);
        }
        let found = images_named(&self.session, self.cloud.image.clone(), wanted).await;
        let found = found.map_err(|error| self.failed(error))?;
        one_of("openstack.image", "image", wanted, &found)
    }

    async fn networks(&self) -> Result<ServerNetworks, CliError> {
        let wanted = &self.settings.network;
        match wanted.as_str() {
            "auto" => return Ok(ServerNetworks::Auto),
            "none" => return Ok(ServerNetworks::None),
            _ => {}
        }
        if let Ok(id) = wanted.parse() {
            return Ok(ServerNetworks::Ids(vec![id]));
        }
        let found = networks_named(&self.session, self.cloud.network.clone(), wanted).await;
        let found = found.map_err(|error| self.failed(error))?;
        let id = one_of("openstack.network", "network", wanted, &found)?;
        Ok(ServerNetworks::Ids(vec![id]))
    }
}

fn found(server: &Server) -> FoundServer {
    FoundServer {
        server: seen(server, &server.name),
        state: server.status.to_lowercase(),
        host: server.host.clone().unwrap_or_default(),
        address: server.address().unwrap_or_default().to_owned(),
    }
}

/// What was wrong before Nova was asked: a name that nothing has fails each time.
fn not_made(error: CliError) -> OrderError {
    match error {
        CliError::Burst(BurstError::Setting { .. }) => OrderError::Refused(error),
        _ => OrderError::Unknown(error),
    }
}

/// The service `preemption`. It gives prices only, and servers must come without it, too.
async fn preemption_service(cloud: &CloudConfig, session: &Session) -> Option<Region> {
    let endpoint = preemption_endpoint(cloud, session).await.ok()??;
    let own = Credentials::default();
    let own = credentials_for(cloud, session.clone(), &endpoint, own).await;
    Region::connect(&endpoint, &own.ok()?).await.ok()
}

/// The cloud that the settings name.
fn wanted(settings: &OpenStackSettings) -> CloudSelector<'_> {
    CloudSelector {
        name: settings.cloud.as_deref(),
        region: settings.region_name.as_deref(),
    }
}

/// An environment in which the file of the settings is the one that counts.
fn with_file(mut environment: Environment, settings: &OpenStackSettings) -> Environment {
    if let Some(file) = &settings.clouds_file {
        let file = file.display().to_string();
        environment.variables.insert(CONFIG_FILE.to_owned(), file);
    }
    environment
}

fn setting(key: &str, problem: String) -> CliError {
    BurstError::Setting {
        key: key.to_owned(),
        problem,
    }
    .into()
}

/// The id of the only resource with a name.
fn one_of(key: &str, what: &str, wanted: &str, found: &[NamedResource]) -> Result<Uuid, CliError> {
    match found {
        [one] => Ok(one.id),
        [] => Err(setting(
            key,
            format!("there is no {what} {wanted:?}; see `openstack {what} list`"),
        )),
        several => Err(setting(
            key,
            format!(
                "there are {} {what}s named {wanted:?}; give the id of one",
                several.len()
            ),
        )),
    }
}

fn user_data(path: &std::path::Path) -> Result<String, CliError> {
    let content = std::fs::read(path).map_err(|error| BurstError::Storage {
        what: "read",
        path: path.display().to_string(),
        problem: error.to_string(),
    })?;
    let encoded = STANDARD.encode(content);
    if encoded.len() > MAX_USER_DATA {
        let problem = format!(
            "{} has {} characters in Base64; Nova takes {MAX_USER_DATA}",
            path.display(),
            encoded.len()
        );
        return Err(setting("openstack.user_data", problem));
    }
    Ok(encoded)
}

/// An id that Nova gave.
fn uuid(id: &str) -> Result<Uuid, CliError> {
    id.parse()
        .map_err(|_| CliError::Usage(format!("{id:?} is no id of a server")))
}
