//! A service, and how it is reached.

use crate::{CostService, FilterService, WeigherService};
use crate::{PluginSettings, RemoteError, call::Callee, thread};
use crate::{RemoteCostModule, RemoteFilter, RemotePlugin, RemoteWeigher};
use ebbtide_plugin_contract::{
    self as contract, CostDescription, FilterDescription, WeigherDescription,
};
use ebbtide_proto::plugin::v1::description::Kind;
use ebbtide_proto::plugin::v1::{DescribeRequest, Description};
use ebbtide_weigher_api::Bounds;
use std::time::Duration;
use tonic::Code;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

/// How long a service may take to describe itself: it may have just been started.
const DESCRIBE: Duration = Duration::from_secs(5);
/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(2);

/// What one plugin may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceLimits {
    /// How long one call may take. 1 ms to 60 s.
    pub deadline: Duration,
    /// How many calls there may be at a time. 1 to 1024.
    pub in_flight: usize,
}

impl Default for ServiceLimits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_millis(100),
            in_flight: 8,
        }
    }
}

impl ServiceLimits {
    fn check(self) -> Result<(), RemoteError> {
        let wrong = |key, problem: String| Err(RemoteError::Limit { key, problem });
        let millis = self.deadline.as_millis();
        if !(1..=60_000).contains(&millis) {
            return wrong("deadline_ms", format!("{millis} is not 1 to 60000"));
        }
        if !(1..=1024).contains(&self.in_flight) {
            return wrong("in_flight", format!("{} is not 1 to 1024", self.in_flight));
        }
        Ok(())
    }
}

/// Certificates, in PEM.
#[derive(Debug, Clone, Default)]
pub struct Tls {
    /// Trusted root certificates; without them those of the system.
    pub ca: Option<Vec<u8>>,
    /// The scheduler's certificate and key.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// A service that has one plugin or several.
#[derive(Debug, Clone)]
pub struct Service {
    channel: Channel,
}

impl Service {
    /// A service at `http://HOST:PORT`, `https://HOST:PORT` or `unix:/PATH`. No connection is made
    /// yet.
    ///
    /// # Errors
    /// What is wrong with the address or the certificates.
    pub fn at(address: &str, tls: &Tls) -> Result<Self, RemoteError> {
        let wrong = || RemoteError::Address(address.to_owned());
        let schemes = ["http://", "https://", "unix:"];
        if !schemes.iter().any(|scheme| address.starts_with(scheme)) {
            return Err(wrong());
        }
        let endpoint = Endpoint::from_shared(address.to_owned()).map_err(|_| wrong())?;
        let mut endpoint = endpoint
            .connect_timeout(CONNECT)
            .tcp_nodelay(true)
            .tcp_keepalive(Some(Duration::from_secs(30)));
        if address.starts_with("https://") {
            let mut config = ClientTlsConfig::new();
            config = match &tls.ca {
                Some(ca) => config.ca_certificate(Certificate::from_pem(ca)),
                None => config.with_native_roots(),
            };
            if let Some((certificate, key)) = &tls.identity {
                config = config.identity(Identity::from_pem(certificate, key));
            }
            let with = endpoint.tls_config(config);
            endpoint = with.map_err(|error| RemoteError::Tls(reasons(&error)))?;
        }
        let _inside = thread::handle()?.enter();
        Ok(Self {
            channel: endpoint.connect_lazy(),
        })
    }

    /// Asks one of its plugins to describe itself. `plugin` is what the service calls it, `name`
    /// what the operator does.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn plugin(
        &self,
        plugin: &str,
        name: &str,
        settings: &PluginSettings,
        limits: ServiceLimits,
    ) -> Result<RemotePlugin, RemoteError> {
        limits.check()?;
        let callee = Callee::new(self.channel.clone(), plugin, settings, limits)?;
        let said = callee.describe(DESCRIBE)?;
        if !contract::speaks(&said.contract) {
            return Err(RemoteError::Version(said.contract));
        }
        match said.kind {
            Some(Kind::Weigher(said)) => {
                let bounds = Bounds {
                    min: said.min,
                    max: said.max,
                };
                let described =
                    WeigherDescription::check(said.default_multiplier, &said.needs, bounds)?;
                let weigher = RemoteWeigher::new(name, described, WeigherService(callee));
                Ok(RemotePlugin::Weigher(weigher))
            }
            Some(Kind::CostModule(said)) => {
                let described = CostDescription::check(said.unit, &said.needs, said.surcharges)?;
                let module = RemoteCostModule::new(name, described, CostService(callee));
                Ok(RemotePlugin::CostModule(module))
            }
            Some(Kind::Filter(said)) => {
                let described = FilterDescription::check(&said.needs)?;
                let filter = RemoteFilter::new(name, described, FilterService(callee));
                Ok(RemotePlugin::Filter(filter))
            }
            None => {
                let problem = "it is no weigher, no cost module and no filter".to_owned();
                Err(contract::DescriptionError(problem).into())
            }
        }
    }
}

impl Callee {
    /// What it says of itself.
    fn describe(&self, patience: Duration) -> Result<Description, RemoteError> {
        let asked = DescribeRequest {
            plugin: self.plugin().to_owned(),
            settings: self.settings(),
            contract: contract::CONTRACT.to_owned(),
        };
        let answered = self.call_with_deadline(
            patience,
            |mut client, asked| async move { client.describe(asked).await },
            asked,
        );
        answered.map_err(|status| match status.code() {
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => {
                RemoteError::Away(words(&status))
            }
            _ => RemoteError::Refuses(words(&status)),
        })
    }
}

/// A status in words. Transport errors hide what happened in their sources.
pub(crate) fn words(status: &tonic::Status) -> String {
    match std::error::Error::source(status) {
        Some(source) => reasons(source),
        None if status.message().is_empty() => status.code().description().to_owned(),
        None => status.message().to_owned(),
    }
}

/// An error with its sources.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let more = source.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = source.source();
    }
    text
}
