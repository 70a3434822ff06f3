//! Converts nova.conf to the settings of the service's parts.

use crate::error::NovaServiceError;
use crate::preemption::{PreemptionPolicy, ReplyWhen};
use crate::settings::{HeadroomOptions, HeadroomRule, SelectSettings};
use ebbtide_bus::{BrokerUrl, QueuePrefix};
use ebbtide_evacuation::{ComebackConfig, EvacuationPolicy};
use ebbtide_market::{MarketConfig, PriceRule};
use ebbtide_model::Seconds;
use ebbtide_nova::hosts::Ratios;
use ebbtide_nova::model::Options;
use ebbtide_nova::release::Release;
use ebbtide_nova_cloud::{Cloud, CloudSettings};
use ebbtide_nova_db::{NovaDbConfig, PoolOptions, Secret};
use ebbtide_nova_objects::nova_conf::{self, EbbtideSection, NovaConf};
use ebbtide_openstack::{AdapterOptions, AuthMethod, AuthOptions, SessionOptions};
use ebbtide_store::StoreConfig;
use oslo_messaging::{RabbitOptions, TransportUrl};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The option that configures the ledger.
pub(crate) const LEDGER: &str = "[ebbtide] connection";

/// The program's name in Nova: oslo.config finds its configuration and its log file by it.
pub const PROGRAM: &str = "nova-scheduler";

/// Reads nova.conf as nova-scheduler does: these files and folders, or those that oslo.config finds
/// by itself.
///
/// # Errors
/// [`NovaServiceError::Config`] that names file, line, option and what is allowed.
pub fn read_conf(files: &[PathBuf], folders: &[PathBuf]) -> Result<NovaConf, NovaServiceError> {
    let mut found = oslo_config::Config::find("nova", PROGRAM, files, folders).map_err(config)?;
    NovaConf::read(&mut found, &nova_conf::Machine::here()).map_err(config)
}

fn config(error: impl std::fmt::Display) -> NovaServiceError {
    NovaServiceError::Config(error.to_string())
}

fn seconds(number: i64) -> Seconds {
    Seconds(u32::try_from(number.max(0)).unwrap_or(u32::MAX))
}

/// The settings for processing requests.
pub(crate) fn settings(conf: &NovaConf) -> SelectSettings {
    let ours = &conf.ebbtide;
    let defaults = SelectSettings::default();
    let duration = |number: i64| Duration::from_secs(seconds(number).0.into());
    SelectSettings {
        preemption: ours.preemption,
        reply_when: match ours.reply_when {
            nova_conf::ReplyWhen::RoomFree => ReplyWhen::RoomFree,
            nova_conf::ReplyWhen::AtOnce => ReplyWhen::AtOnce,
        },
        plan_rounds: u32::try_from(ours.plan_rounds).unwrap_or(defaults.plan_rounds),
        placement_patience: duration(ours.placement_patience),
        placement_list_every: duration(ours.placement_poll),
        evacuation: PreemptionPolicy {
            evacuation: EvacuationPolicy {
                notice_timeout: seconds(ours.notice_timeout),
                act_timeout: seconds(ours.act_timeout),
                ..EvacuationPolicy::openstack()
            },
            room_timeout: seconds(ours.room_timeout),
            comeback: comeback(ours),
            ..PreemptionPolicy::default()
        },
    }
}

/// Checks a configuration without any connection. Returns the errors for which
/// [`NovaService::open`](crate::NovaService::open) would refuse it, in the same order.
///
/// # Errors
/// Those of `NovaService::open`, each of which would keep it from opening.
pub fn check(conf: &NovaConf) -> Vec<NovaServiceError> {
    let mut wrong = Vec::new();
    let mut look = |result: Result<(), NovaServiceError>| wrong.extend(result.err());
    look(messaging(conf).map(drop));
    look(placement(conf).map(drop));
    look(databases(conf).map(drop));
    look(
        Cloud::new(conf.options.clone(), cloud(conf))
            .map(drop)
            .map_err(NovaServiceError::from),
    );
    if let Some(url) = &conf.ebbtide.connection {
        look(ledger(url).map(drop));
        look(agents_bus(conf).map(drop));
    }
    if let Some(address) = &conf.ebbtide.metrics_listen {
        look(metrics_address(address).map(drop));
    }
    look(api_address(conf).map(drop));
    look(headroom(conf).map(drop));
    look(comeback_times(conf));
    look(market(conf).map(drop));
    wrong
}

/// Checks when servers come back.
///
/// # Errors
/// [`NovaServiceError::Config`]: a first pause that is longer than the longest one.
pub(crate) fn comeback_times(conf: &NovaConf) -> Result<(), NovaServiceError> {
    let (first, most) = (conf.ebbtide.comeback_first, conf.ebbtide.comeback_max);
    match first > most {
        true => Err(NovaServiceError::Config(format!(
            "[ebbtide] comeback_first: {first} is above comeback_max, {most}"
        ))),
        false => Ok(()),
    }
}

/// When servers come back.
fn comeback(ours: &EbbtideSection) -> ComebackConfig {
    let count = |number: i64| u32::try_from(number).unwrap_or(u32::MAX);
    ComebackConfig {
        enabled: ours.comeback,
        first_seconds: seconds(ours.comeback_first),
        max_seconds: seconds(ours.comeback_max),
        window_seconds: seconds(ours.comeback_window),
        reserve_percent: count(ours.comeback_reserve_percent),
        hold_seconds: seconds(ours.comeback_hold),
        at_once: count(ours.comeback_at_once),
    }
}

/// How prices are made; `None`: they are what flavors say.
///
/// # Errors
/// [`NovaServiceError::Config`]: a floor above the ceiling, or no database for prices.
pub(crate) fn market(conf: &NovaConf) -> Result<Option<PriceRule>, NovaServiceError> {
    let ours = &conf.ebbtide;
    if !ours.market {
        return Ok(None);
    }
    let wrong = |why: String| NovaServiceError::Config(format!("[ebbtide] market: {why}"));
    if ours.connection.is_none() || !ours.decisions {
        let needs = format!("prices are rows of {LEDGER}, and need it and decisions = true");
        return Err(wrong(needs));
    }
    let percent = |number: i64| u32::try_from(number).unwrap_or(0);
    let rule = PriceRule::new(MarketConfig {
        enabled: true,
        interval_seconds: seconds(ours.market_interval),
        floor_percent: percent(ours.market_floor_percent),
        ceiling_percent: percent(ours.market_ceiling_percent),
        steepness: percent(ours.market_steepness),
        step_percent: percent(ours.market_step_percent),
    });
    rule.map(Some).map_err(|error| wrong(error.to_string()))
}

/// The capacity that is kept free.
///
/// # Errors
/// [`NovaServiceError::Config`] for a rule that is none, for rules without preemption, and for
/// forecasts without decisions to learn from.
pub(crate) fn headroom(conf: &NovaConf) -> Result<HeadroomOptions, NovaServiceError> {
    let ours = &conf.ebbtide;
    let wrong = |why: String| NovaServiceError::Config(format!("[ebbtide] headroom: {why}"));
    let rules = ours.headroom.iter().map(|text| text.parse());
    let rules: Vec<HeadroomRule> = rules.collect::<Result<_, _>>().map_err(wrong)?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = rules
        .iter()
        .find(|rule| !seen.insert((&rule.flavor, &rule.aggregate)))
    {
        return Err(wrong(format!("{twice}: there are two rules of this kind")));
    }
    if !rules.is_empty() && (ours.connection.is_none() || !ours.preemption) {
        let needs = format!("it needs {LEDGER}, and preemption = true");
        return Err(wrong(needs));
    }
    if !ours.decisions && rules.iter().any(HeadroomRule::is_forecast) {
        let needs = "a range is a forecast from decisions, and needs decisions = true";
        return Err(wrong(needs.to_owned()));
    }
    let steps = [ours.headroom_interval, ours.default_grace, ours.act_timeout];
    Ok(HeadroomOptions {
        rules,
        every: Duration::from_secs(seconds(ours.headroom_interval).0.into()),
        lead: seconds(steps.iter().fold(0, |sum, step| sum.saturating_add(*step))),
    })
}

/// Parses the listen address, the value of `[ebbtide] metrics_listen`.
///
/// # Errors
/// [`NovaServiceError::Config`] if it is none.
pub fn metrics_address(text: &str) -> Result<SocketAddr, NovaServiceError> {
    text.parse().map_err(|error| {
        let problem = format!("{error}; it is ADDRESS:PORT, as in 127.0.0.1:7471");
        wrong_address(text, &problem)
    })
}

pub(crate) fn wrong_address(address: &str, problem: &str) -> NovaServiceError {
    NovaServiceError::Config(format!(
        "nova.conf: [ebbtide] metrics_listen = {address}: {problem}"
    ))
}

/// The address of the API, if one is configured.
///
/// # Errors
/// [`NovaServiceError::Config`] for one that is none.
pub fn api_address(conf: &NovaConf) -> Result<Option<SocketAddr>, NovaServiceError> {
    let Some(text) = &conf.ebbtide.api_listen else {
        return Ok(None);
    };
    match text.parse() {
        Ok(address) => Ok(Some(address)),
        Err(error) => Err(NovaServiceError::Config(format!(
            "nova.conf: [ebbtide] api_listen = {text}: {error}; it is ADDRESS:PORT, as in \
             0.0.0.0:7472"
        ))),
    }
}

/// The ledger's database, if one is configured.
///
/// # Errors
/// [`NovaServiceError::Config`] for an URL that is none.
pub fn ledger_database(conf: &NovaConf) -> Result<Option<StoreConfig>, NovaServiceError> {
    conf.ebbtide.connection.as_deref().map(ledger).transpose()
}

/// The ledger's database.
pub(crate) fn ledger(url: &str) -> Result<StoreConfig, NovaServiceError> {
    StoreConfig::new(&plain_url(url))
        .map_err(|error| NovaServiceError::Config(format!("{LEDGER}: {error}")))
}

/// The brokers between schedulers and agents, and the first part of their queues' names.
pub(crate) fn agents_bus(
    conf: &NovaConf,
) -> Result<(Vec<BrokerUrl>, QueuePrefix), NovaServiceError> {
    let ours = &conf.ebbtide;
    let url = ours.bus_url.as_deref();
    let brokers = crate::brokers::brokers(url.unwrap_or(&conf.general.transport_url))?;
    let prefix = ours.bus_prefix.as_deref();
    let prefix = QueuePrefix::new(prefix.unwrap_or(ebbtide_bus::DEFAULT_PREFIX))?;
    Ok((brokers, prefix))
}

/// `[workarounds] disable_compute_service_check_for_ffu`: computes that are too old cause a
/// warning, not a stop.
pub(crate) fn tolerates_old_computes(conf: &NovaConf) -> bool {
    conf.workarounds
        .get("disable_compute_service_check_for_ffu")
        .is_some_and(|value| {
            matches!(
                value.to_ascii_lowercase().as_str(),
                "1" | "true" | "yes" | "on"
            )
        })
}

/// Nova's options for decisions, as that release of Nova reads them; logs options without effect.
pub(crate) fn deciding(conf: &NovaConf, release: u32) -> Result<Options, NovaServiceError> {
    let (options, notes) = conf
        .options_for(Release(release))
        .map_err(|error| NovaServiceError::Config(error.to_string()))?;
    tracing::info!(release, "deciding as this release of Nova");
    for note in notes {
        tracing::warn!("nova.conf: {note}");
    }
    Ok(options)
}

/// Ebbtide's own options for decisions.
pub(crate) fn cloud(conf: &NovaConf) -> CloudSettings {
    let mut settings = CloudSettings {
        grace: seconds(conf.ebbtide.default_grace),
        protected: seconds(conf.ebbtide.default_protected),
        ..CloudSettings::default()
    };
    if let Some(module) = &conf.ebbtide.cost_module {
        settings.engine.cost_module.clone_from(module);
    }
    settings
}

/// The connections to Nova's databases.
pub(crate) fn databases(conf: &NovaConf) -> Result<NovaDbConfig, NovaServiceError> {
    let need = |section: &str, of: &nova_conf::Database| {
        of.connection.clone().map(Secret::new).ok_or_else(|| {
            NovaServiceError::Config(format!("nova.conf: [{section}] connection is not set"))
        })
    };
    let options = &conf.options;
    let pool = PoolOptions {
        max_connections: conf
            .database
            .max_pool_size
            .and_then(|size| u32::try_from(size).ok())
            .filter(|size| *size > 0)
            .unwrap_or_else(|| PoolOptions::default().max_connections),
        ..PoolOptions::default()
    };
    Ok(NovaDbConfig {
        api_url: need("api_database", &conf.api_database)?,
        main_url: need("database", &conf.database)?,
        transport_url: Some(Secret::new(conf.general.transport_url.clone())),
        ratios: Ratios {
            cpu: ratio(
                options.cpu_allocation_ratio,
                options.initial_cpu_allocation_ratio,
            ),
            ram: ratio(
                options.ram_allocation_ratio,
                options.initial_ram_allocation_ratio,
            ),
            disk: ratio(
                options.disk_allocation_ratio,
                options.initial_disk_allocation_ratio,
            ),
        },
        pool,
    })
}

/// `*_allocation_ratio` if it is set and not 0, else `initial_*` (`nova/objects/compute_node.py`).
fn ratio(set: Option<f64>, initial: f64) -> f64 {
    set.filter(|ratio| *ratio != 0.0).unwrap_or(initial)
}

/// The endpoint of Placement, and the credentials for it.
pub(crate) fn placement(
    conf: &NovaConf,
) -> Result<(AuthOptions, SessionOptions, AdapterOptions), NovaServiceError> {
    let section = &conf.placement;
    Ok((
        AuthOptions::from_lookup("[placement]", section.lookup())?,
        SessionOptions::new("ebbtide-scheduler"),
        AdapterOptions::placement().read("[placement]", section.lookup())?,
    ))
}

/// The endpoint of Nova's API, and the credentials for it: those of `[placement]`, with what is the
/// same for all services.
///
/// # Errors
/// [`NovaServiceError::Config`]: Placement is reached without Keystone's catalog, so nothing says
/// where Nova's API is.
pub(crate) fn compute(
    conf: &NovaConf,
) -> Result<(AuthOptions, SessionOptions, AdapterOptions), NovaServiceError> {
    const COMMON: [&str; 2] = ["region_name", "valid_interfaces"];
    let (mut auth, session, _) = placement(conf)?;
    if matches!(
        auth.method,
        AuthMethod::AdminToken { .. } | AuthMethod::None
    ) {
        let why = "[placement] auth_type has no catalog that names Nova's API: set comeback = false, \
                   or use a password or an application credential";
        return Err(NovaServiceError::Config(format!(
            "[ebbtide] comeback: {why}"
        )));
    }
    // There it is Placement's.
    auth.endpoint = None;
    let section = &conf.placement;
    let lookup = |name: &str| {
        let is_common = COMMON.contains(&name);
        is_common.then(|| section.get(name)).flatten()
    };
    let adapter = AdapterOptions::compute().read("[placement]", lookup)?;
    Ok((auth, session, adapter))
}

/// Nova's message bus.
pub(crate) fn messaging(
    conf: &NovaConf,
) -> Result<(TransportUrl, RabbitOptions), NovaServiceError> {
    transport(conf, &conf.general.transport_url)
}

/// A broker by its URL, with the options of `[oslo_messaging_rabbit]`.
pub(crate) fn transport(
    conf: &NovaConf,
    url: &str,
) -> Result<(TransportUrl, RabbitOptions), NovaServiceError> {
    let url: TransportUrl = url.parse().map_err(config)?;
    let options = RabbitOptions::for_url(&url, conf.rabbit.lookup())?;
    Ok((url, options))
}

/// Converts a database URL of OpenStack's form for the ledger: SQLAlchemy names the driver in the
/// scheme, and Python's drivers have their own parameters.
pub(crate) fn plain_url(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
    let scheme = scheme.split('+').next().unwrap_or(scheme);
    let scheme = match scheme {
        "mariadb" => "mysql",
        "postgresql" => "postgres",
        other => other,
    };
    let rest = match rest.split_once('?') {
        Some((place, query)) => {
            let ours: Vec<&str> = query
                .split('&')
                .filter(|option| !option.starts_with("charset="))
                .collect();
            if ours.is_empty() {
                place.to_owned()
            } else {
                format!("{place}?{}", ours.join("&"))
            }
        }
        None => rest.to_owned(),
    };
    format!("{scheme}://{rest}")
}

#[cfg(test)]
mod tests {
    use super::plain_url;

    #[test]
    fn python_drivers_and_their_parameters_are_left_out() {
        for (python, plain) in [
            (
                "mysql+pymysql://u:p@h:3306/ebbtide?charset=utf8",
                "mysql://u:p@h:3306/ebbtide",
            ),
            (
                "postgresql+psycopg2://u:p@h/ebbtide",
                "postgres://u:p@h/ebbtide",
            ),
            (
                "mysql://u:p@h/e?charset=utf8&ssl-mode=REQUIRED",
                "mysql://u:p@h/e?ssl-mode=REQUIRED",
            ),
            (
                "sqlite:///var/lib/ebbtide.db",
                "sqlite:///var/lib/ebbtide.db",
            ),
        ] {
            assert_eq!(plain_url(python), plain);
        }
    }
}
