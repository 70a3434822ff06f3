//! The API on an OpenStack (`[ebbtide] api_listen`): the services of a standalone region, over gRPC
//! and REST, for tokens of Keystone.

use crate::Tasks;
use crate::args::Args;
use crate::cloud::{Api, OpenStackView};
use crate::config::{CallerLimits, ClientCertificates, Tls};
use crate::error::ServiceError;
use crate::gate::{Gate, KeystoneGate};
use crate::grpc;
use crate::metrics::Refusals;
use crate::wire::{Port, TlsServer};
use ebbtide_keystone::{AuthTokenOptions, LimitOptions, LimitReader, SECTION, TokenValidator};
use ebbtide_listen::Protocol;
use ebbtide_nova_service::nova_conf::NovaConf;
use ebbtide_nova_service::{CloudReader, NovaService, NovaServiceError, PROGRAM};
use ebbtide_openstack::Session;
use ebbtide_service_manager::reload::{Logins, Refusal};
use ebbtide_store::StoreConfig;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long calls in progress may take at shutdown.
const FINISH: Duration = Duration::from_secs(10);
/// Whose address and files these are.
pub const SOURCE: &str = "[ebbtide] api_listen";
/// The option that needs limits of Keystone.
pub const LIMITS_SOURCE: &str = "[ebbtide] quota";
/// The key of a reload.
const AUTHTOKEN: &str = "[keystone_authtoken]";

/// What the API is configured to be.
#[derive(Debug)]
pub struct OpenStackApiConfig {
    /// Where it listens.
    pub address: SocketAddr,
    /// How tokens are validated.
    pub authtoken: AuthTokenOptions,
    /// The database of the ledger, for decisions.
    pub ledger: Option<StoreConfig>,
    /// The operator's policy file (`[ebbtide] api_policy_file`).
    pub policy: Option<PathBuf>,
    /// How much one caller can have (`[ebbtide] api_limits_file`).
    pub limits: CallerLimits,
    /// Certificate and key; `None`: no TLS.
    pub tls: Option<Tls>,
}

impl OpenStackApiConfig {
    /// Reads it from nova.conf; `None` without `api_listen`.
    ///
    /// # Errors
    /// [`NovaServiceError::Config`]: an address that is none, half of a certificate, or
    /// `[keystone_authtoken]` that is missing or wrong: no API without authentication.
    pub fn read(args: &Args, conf: &NovaConf) -> Result<Option<Self>, NovaServiceError> {
        let wrong = |problem: String| NovaServiceError::Config(problem);
        let Some(address) = ebbtide_nova_service::api_address(conf)? else {
            return Ok(None);
        };
        let (_, authtoken) = authtoken(&args.config_file, &args.config_dir, SOURCE)?;
        let ours = &conf.ebbtide;
        let tls = match (&ours.api_certificate, &ours.api_private_key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(Tls {
                certificate: certificate.into(),
                key: key.into(),
                client_ca: None,
                client_crl: None,
                client_certificates: ClientCertificates::default(),
            }),
            _ => {
                let problem = "[ebbtide] api_certificate and api_private_key: set both or neither";
                return Err(wrong(problem.to_owned()));
            }
        };
        let limits = match &ours.api_limits_file {
            Some(path) => CallerLimits::read(Path::new(path))
                .map_err(|problem| wrong(format!("[ebbtide] api_limits_file: {problem}")))?,
            None => CallerLimits::default(),
        };
        let ledger = ebbtide_nova_service::ledger_database(conf)?;
        Ok(Some(Self {
            address,
            authtoken,
            ledger,
            policy: ours.api_policy_file.as_ref().map(PathBuf::from),
            limits,
            tls,
        }))
    }
}

/// nova.conf, and how it says that tokens are validated. `source` is the option that needs it.
fn authtoken(
    files: &[PathBuf],
    folders: &[PathBuf],
    source: &str,
) -> Result<(oslo_config::Config, AuthTokenOptions), NovaServiceError> {
    let files = oslo_config::Config::find("nova", PROGRAM, files, folders);
    let files = files.map_err(|error| NovaServiceError::Config(error.to_string()))?;
    let authtoken = AuthTokenOptions::read(&files).map_err(|error| {
        NovaServiceError::Config(format!(
            "{source} is set and needs [{SECTION}], which cannot be used: {error}"
        ))
    })?;
    Ok((files, authtoken))
}

/// Reads the limits of projects from Keystone; `None` without `[ebbtide] quota`.
///
/// # Errors
/// [`NovaServiceError::Config`]: `[oslo_limit]` or `[keystone_authtoken]` cannot be used.
pub fn limits(args: &Args, conf: &NovaConf) -> Result<Option<LimitReader>, NovaServiceError> {
    if !conf.ebbtide.quota {
        return Ok(None);
    }
    let source = LIMITS_SOURCE;
    let (files, authtoken) = authtoken(&args.config_file, &args.config_dir, source)?;
    let wrong = |error| NovaServiceError::Config(format!("{source}: {error}"));
    let options = LimitOptions::read(&files, &authtoken).map_err(wrong)?;
    Ok(Some(LimitReader::new(options).map_err(wrong)?))
}

/// Renews the credentials of `[keystone_authtoken]` for this session. `source` is the option that
/// needs them.
pub fn add_login(
    logins: &mut Logins<NovaConf>,
    args: &Args,
    source: &'static str,
    session: &Session,
) {
    let (files, folders) = (args.config_file.clone(), args.config_dir.clone());
    let session = session.clone();
    logins.add(AUTHTOKEN, move |_: &NovaConf| {
        let session = session.clone();
        let read = authtoken(&files, &folders, source).map(|(_, options)| options.auth);
        async move {
            let auth = read.map_err(|error| Refusal::new(error.code(), &error))?;
            let renewed = session.renew_login(auth).await;
            renewed.map_err(|error| Refusal::new(error.code(), &error))
        }
    });
}

/// A running API.
pub struct OpenStackApi {
    /// Where it listens.
    pub address: SocketAddr,
    session: Session,
    tasks: Tasks,
}

impl OpenStackApi {
    /// Starts the API of a running scheduler; it ends with `stop`.
    ///
    /// # Errors
    /// The address cannot be used, or the certificate cannot be read.
    pub async fn start(
        mut config: OpenStackApiConfig,
        service: &NovaService,
        stop: CancellationToken,
    ) -> Result<Self, ServiceError> {
        if let (Some(ours), Some(ledger)) = (&mut config.ledger, service.ledger()) {
            ours.url = ledger.url.clone();
        }
        Self::over(config, service.reader(), service.refusal_counter(), stop).await
    }

    /// Starts the API over what is read of a cloud.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub async fn over(
        config: OpenStackApiConfig,
        reader: CloudReader,
        count_refusal: impl Fn(&'static str) + Send + Sync + 'static,
        stop: CancellationToken,
    ) -> Result<Self, ServiceError> {
        let refusals = Refusals::new(count_refusal);
        for note in &config.authtoken.notes {
            tracing::info!("{note}");
        }
        let port = Port::take("the API", config.address, SOURCE).await?;
        let tls = match &config.tls {
            Some(files) => Some(TlsServer::load(files, "api", &[b"h2", b"http/1.1"])?),
            None => None,
        };
        let address = port.address;
        if tls.is_none() && !address.ip().is_loopback() {
            tracing::warn!(
                "{SOURCE} = {address} has no TLS: tokens can be read on the network; set \
                 api_certificate and api_private_key, or listen on 127.0.0.1 behind a proxy"
            );
        }
        let validator = TokenValidator::new(config.authtoken)?;
        let session = validator.session().clone();
        let tasks = Tasks::new(stop);
        check_credentials(validator.clone(), &tasks);
        let limits = config.limits;
        let keystone = KeystoneGate::new(validator, config.policy)?;
        let gate = Gate::of_keystone(keystone, limits.clone(), refusals.clone());
        gate.follow(&tasks);
        let rest = grpc::rest_layer(&gate, tls.is_some())?;
        if let Some(tls) = &tls {
            tls.follow(&tasks);
        }
        let connections = port.open(Protocol::Http2, tls, &limits, refusals, &tasks);
        let view = Arc::new(OpenStackView::new(reader, config.ledger));
        view.follow(&tasks);
        view.follow_lives(&tasks);
        let api = Api::of_openstack(view);
        grpc::serve(connections, api, gate, rest, &tasks);
        tracing::info!(%address, "the API answers gRPC and REST");
        Ok(Self {
            address,
            session,
            tasks,
        })
    }

    /// The session with our own credentials, for [`add_login`].
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Waits for the calls in progress, after `stop`.
    pub async fn finish(self) {
        if !self.tasks.finish(FINISH).await {
            tracing::warn!("some calls of the API did not end within {FINISH:?}");
        }
    }
}

/// Says in the log if Keystone does not accept our own credentials. Requests for servers do not
/// need it, so the scheduler goes on.
fn check_credentials(validator: TokenValidator, tasks: &Tasks) {
    tasks.spawn("keystone-check", async move {
        if let Err(error) = validator.check().await {
            tracing::error!(code = error.code(), "[{SECTION}]: {error}");
        }
    });
}
