//! Asks everything that a scheduler needs. What cannot be read is a fact, too.

use super::{CheckInput, NovaFacts, UpgradeFacts};
use crate::configure;
use crate::error::NovaServiceError;
use crate::release;
use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, QueueUse};
use ebbtide_nova_db::NovaDb;
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_openstack::{Placement, Session};
use ebbtide_runtime::clock;
use ebbtide_store::SchemaState;
use ebbtide_store::ledger::Ledger;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long a broker may take to answer.
const BROKER_LIMIT: Duration = Duration::from_secs(10);
/// The queue of requests: the topic of schedulers.
const REQUESTS: &str = "scheduler";

/// Reads all parts at the same time. `progress` gets the name of each that has answered.
pub async fn read(conf: &NovaConf, progress: impl Fn(&str)) -> UpgradeFacts {
    let configuration = configure::check(conf).iter().map(shown).collect();
    let (nova, placement, compute, messages, ledger) = tokio::join!(
        with_progress(&progress, "Nova's databases", nova(conf)),
        with_progress(&progress, "Placement", placement(conf)),
        with_progress(&progress, "Nova's API", compute(conf)),
        with_progress(&progress, "the message broker", messages(conf)),
        with_progress(&progress, "the ledger", ledger(conf)),
    );
    let agents = match (&conf.ebbtide.connection, &nova) {
        // Without Nova's databases it is not known which hosts should have one.
        (None, _) | (_, Err(_)) => None,
        (Some(_), Ok(nova)) => {
            let hosts = nova.computes.iter().cloned().collect();
            let read = agents(conf, hosts);
            Some(with_progress(&progress, "the agents' queues", read).await)
        }
    };
    let shown_release = nova.as_ref().ok().and_then(|nova| nova.release);
    let deciding_as = release::deciding(shown_release, conf);
    let differences = conf
        .options_for(ebbtide_nova::release::Release(deciding_as))
        .map(|(_, notes)| notes)
        .map_err(|error| shown(&NovaServiceError::Config(error.to_string())));
    UpgradeFacts {
        configuration,
        nova,
        placement,
        compute,
        messages,
        ledger,
        agents,
        differences,
        deciding_as,
        release_is_named: conf.ebbtide.nova_release.is_some(),
        default_grace: configure::cloud(conf).grace,
    }
}

async fn with_progress<T>(
    progress: &impl Fn(&str),
    name: &str,
    read: impl Future<Output = T>,
) -> T {
    let read = read.await;
    progress(name);
    read
}

/// An error with its code, as the operator finds it in docs/reference/errors.md.
fn shown(error: &NovaServiceError) -> String {
    format!("{}: {error}", error.code())
}

fn said<T>(result: Result<T, impl Into<NovaServiceError>>) -> CheckInput<T> {
    result.map_err(|error| shown(&error.into()))
}

async fn nova(conf: &NovaConf) -> CheckInput<NovaFacts> {
    let config = said(configure::databases(conf))?;
    let nova = said(NovaDb::connect(&config).await)?;
    let read = said(nova_facts(&nova, conf).await);
    nova.close().await;
    read
}

async fn nova_facts(nova: &NovaDb, conf: &NovaConf) -> Result<NovaFacts, NovaServiceError> {
    let cells = nova.enabled_cells();
    let mut facts = NovaFacts {
        cells: cells.len(),
        release: nova.shown_release().await?.after(None),
        oldest_compute: nova.min_compute_version().await?,
        tolerates_old_computes: configure::tolerates_old_computes(conf),
        schedulers: nova.schedulers().await?,
        flavors: nova.flavors().await?,
        ..NovaFacts::default()
    };
    for cell in cells {
        match cell.services().await {
            Ok(services) => facts
                .computes
                .extend(services.into_iter().map(|service| service.host)),
            Err(error) => {
                let error = shown(&error.into());
                facts.silent_cells.push((cell.label().to_owned(), error));
            }
        }
    }
    let down = conf.general.service_down_time.saturating_mul(1_000_000);
    let youngest = clock::unix_micros().saturating_sub(down);
    let up = facts
        .schedulers
        .iter()
        .filter(|record| record.last_seen_up.is_some_and(|seen| seen >= youngest));
    facts.schedulers_up = up.map(|record| record.host.clone()).collect();
    Ok(facts)
}

async fn placement(conf: &NovaConf) -> CheckInput<String> {
    let (auth, session, adapter) = said(configure::placement(conf))?;
    let session = said(Session::new(auth, session))?;
    let placement = said(Placement::new(session, adapter))?;
    let range = said(placement.check_version().await)?;
    Ok(range.max.to_string())
}

/// Asks what only an administrator may.
async fn compute(conf: &NovaConf) -> Option<CheckInput<()>> {
    if !crate::nova_api::is_needed(conf) {
        return None;
    }
    let asked = async {
        let compute = crate::nova_api::client(conf)?;
        compute.services(Some("nova-scheduler")).await?;
        Ok::<_, NovaServiceError>(())
    };
    Some(said(asked.await))
}

async fn ledger(conf: &NovaConf) -> Option<CheckInput<SchemaState>> {
    let url = conf.ebbtide.connection.as_ref()?;
    let store = match said(configure::ledger(url)) {
        Ok(store) => store,
        Err(error) => return Some(Err(error)),
    };
    Some(said(Ledger::schema_state(&store).await))
}

async fn messages(conf: &NovaConf) -> CheckInput<Option<QueueUse>> {
    let brokers = said(crate::brokers::brokers(&conf.general.transport_url))?;
    let bus = said(connect(brokers).await)?;
    let requests = said(bus.queue_use(REQUESTS).await);
    bus.close().await;
    requests
}

/// The use of the queues of these hosts' agents; `None`: there is no queue.
pub(crate) async fn agents(
    conf: &NovaConf,
    hosts: Vec<String>,
) -> CheckInput<BTreeMap<String, Option<QueueUse>>> {
    let (brokers, prefix) = said(configure::agents_bus(conf))?;
    let bus = said(connect(brokers).await)?;
    let mut queues = BTreeMap::new();
    for host in hosts {
        // A host whose name no queue can have has no agent.
        let queue = prefix.agent(&host).ok();
        let used = match &queue {
            Some(queue) => said(bus.queue_use(queue.as_str()).await),
            None => Ok(None),
        };
        match used {
            Ok(used) => queues.insert(host, used),
            Err(error) => {
                bus.close().await;
                return Err(error);
            }
        };
    }
    bus.close().await;
    Ok(queues)
}

async fn connect(brokers: Vec<ebbtide_bus::BrokerUrl>) -> Result<AmqpBus, NovaServiceError> {
    let config = AmqpConfig::new(brokers, "ebbtide-manage");
    Ok(AmqpBus::connect(config, BROKER_LIMIT).await?)
}
