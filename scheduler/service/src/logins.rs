//! The logins of a standalone region that SIGHUP renews: at the broker and at the database.

use crate::args::Args;
use crate::config::Config;
use ebbtide_bus::{BrokerUrl, BusError, BusLogins};
use ebbtide_service_manager::reload::{Logins, Refusal};
use ebbtide_store::{DatabaseUrl, StoreConfig, StoreError};

/// Of a region with this bus and this database. A bus within the process has no login.
pub(crate) fn logins(bus: Option<BusLogins>, store: &StoreConfig) -> Logins<Config> {
    let mut logins = Logins::default();
    if let Some(bus) = bus {
        logins.add("bus.urls", move |config: &Config| {
            let (bus, urls) = (bus.clone(), config.bus.urls.clone());
            async move {
                let refused = |error: BusError| Refusal::new(error.code(), &error);
                let urls = urls.iter().map(|url| url.parse());
                let urls: Vec<BrokerUrl> = urls.collect::<Result<_, _>>().map_err(refused)?;
                bus.renew(&urls).await.map_err(refused)
            }
        });
    }
    let store = store.clone();
    logins.add("database.url", move |config: &Config| {
        let (store, url) = (store.clone(), config.database.url.clone());
        async move {
            let refused = |error: StoreError| Refusal::new(error.code(), &error);
            let url: DatabaseUrl = url.parse().map_err(refused)?;
            store.renew_login(&url).await.map_err(refused)
        }
    });
    logins
}

/// SIGHUP: reads the configuration again and renews the logins in it. `used` is what the scheduler
/// was started with.
pub async fn reload(args: &Args, used: &Config, logins: &Logins<Config>) {
    match args.config(std::env::vars()) {
        Ok(read) => {
            let later = read.changes_for_next_start(used);
            logins.renew(Ok((&read, &later))).await;
        }
        Err(error) => {
            let refusal = Refusal::new(error.code(), &error);
            logins.renew(Err(refusal)).await;
        }
    }
}
