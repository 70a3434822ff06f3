//! The logins in nova.conf that SIGHUP renews: the brokers', the databases' and Keystone's.

use crate::configure;
use crate::error::NovaServiceError;
use crate::facts::Facts;
use ebbtide_bus::BusLogins;
use ebbtide_nova_db::{NovaDb, NovaDbConfig, NovaDbError};
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_openstack::{AuthOptions, Compute, Session};
use ebbtide_runtime::login::Renewal;
use ebbtide_service_manager::reload::{Logins, Refusal};
use ebbtide_store::StoreConfig;
use oslo_messaging::Transport;

fn refused(error: &NovaServiceError) -> Refusal {
    Refusal::new(error.code(), error)
}

/// Of Nova's bus, and of the bus of notifications if it is another one.
pub(crate) fn of_transports(logins: &mut Logins<NovaConf>, transports: &[Transport]) {
    let mut transports = transports.iter().cloned();
    if let Some(transport) = transports.next() {
        logins.add("[DEFAULT] transport_url", move |conf: &NovaConf| {
            renew_transport(transport.clone(), configure::messaging(conf))
        });
    }
    if let Some(transport) = transports.next() {
        let key = "[oslo_messaging_notifications] transport_url";
        logins.add(key, move |conf: &NovaConf| {
            let url = conf.notifications.transport_url.as_deref();
            let default = conf.general.transport_url.as_str();
            renew_transport(
                transport.clone(),
                configure::transport(conf, url.unwrap_or(default)),
            )
        });
    }
}

async fn renew_transport<O>(
    transport: Transport,
    read: Result<(oslo_messaging::TransportUrl, O), NovaServiceError>,
) -> Result<Renewal, Refusal> {
    let (url, _) = read.map_err(|error| refused(&error))?;
    let renewed = transport.renew_logins(&url).await;
    renewed.map_err(|error| Refusal::new(error.code(), &error))
}

/// Of Nova's databases, Placement and Nova's API.
pub(crate) fn of_facts(logins: &mut Logins<NovaConf>, facts: &Facts, compute: Option<&Compute>) {
    of_nova_databases(logins, facts.database.nova());
    let session = facts.providers.session().clone();
    logins.add("[placement]", move |conf: &NovaConf| {
        let auth = configure::placement(conf).map(|(auth, ..)| auth);
        renew_session(session.clone(), auth)
    });
    if let Some(session) = compute.map(|compute| compute.session().clone()) {
        logins.add("[placement]", move |conf: &NovaConf| {
            let auth = configure::compute(conf).map(|(auth, ..)| auth);
            renew_session(session.clone(), auth)
        });
    }
}

async fn renew_session(
    session: Session,
    read: Result<AuthOptions, NovaServiceError>,
) -> Result<Renewal, Refusal> {
    let auth = read.map_err(|error| refused(&error))?;
    let renewed = session.renew_login(auth).await;
    renewed.map_err(|error| Refusal::new(error.code(), &error))
}

fn of_nova_databases(logins: &mut Logins<NovaConf>, nova: &NovaDb) {
    let refused_there = |error: NovaDbError| Refusal::new(error.code(), &error);
    let read = |conf: &NovaConf| -> Result<NovaDbConfig, Refusal> {
        configure::databases(conf).map_err(|error| refused(&error))
    };
    let api = nova.clone();
    logins.add("[api_database] connection", move |conf: &NovaConf| {
        let (nova, read) = (api.clone(), read(conf));
        async move {
            nova.renew_api_login(&read?.api_url)
                .await
                .map_err(refused_there)
        }
    });
    let main = nova.clone();
    logins.add("[database] connection", move |conf: &NovaConf| {
        let (nova, read) = (main.clone(), read(conf));
        async move {
            nova.renew_main_login(&read?.main_url)
                .await
                .map_err(refused_there)
        }
    });
}

/// Of the bus between schedulers and agents.
pub(crate) fn of_agents_bus(logins: &mut Logins<NovaConf>, bus: &BusLogins) {
    let bus = bus.clone();
    logins.add("[ebbtide] bus_url", move |conf: &NovaConf| {
        let (bus, read) = (bus.clone(), configure::agents_bus(conf));
        async move {
            let (brokers, _) = read.map_err(|error| refused(&error))?;
            let renewed = bus.renew(&brokers).await;
            renewed.map_err(|error| Refusal::new(error.code(), &error))
        }
    });
}

/// Of the database of the ledger, for every store that has this configuration.
pub(crate) fn of_ledger(logins: &mut Logins<NovaConf>, ledger: &StoreConfig) {
    let ledger = ledger.clone();
    logins.add("[ebbtide] connection", move |conf: &NovaConf| {
        let (ledger, read) = (ledger.clone(), configure::ledger_database(conf));
        async move {
            match read.map_err(|error| refused(&error))? {
                Some(read) => {
                    let renewed = ledger.renew_login(&read.url.current()).await;
                    renewed.map_err(|error| Refusal::new(error.code(), &error))
                }
                None => Ok(Renewal::NextStart("it is not set any more")),
            }
        }
    });
}
