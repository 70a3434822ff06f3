//! Agents as tasks of this program, over one connection to the broker: what hosts have processors
//! of their own for should weigh as little as possible where everything shares one machine.

use anyhow::{Context, Result, bail};
use ebbtide_agent::clock::{Clock, SystemClock};
use ebbtide_agent::driver::registry::{self, DriverContext};
use ebbtide_agent::{Agent, AgentConfig};
use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, QueuePrefix};
use ebbtide_integration_tests::Region;
use ebbtide_integration_tests::region::{PATIENCE, RegionChannel};
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_client::AdminClient;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// They end with this.
pub(crate) struct Agents {
    stop: CancellationToken,
    running: JoinSet<Result<()>>,
}

/// Starts an agent with a simulated hypervisor for each of these hosts, and waits until the
/// scheduler knows them all.
pub(crate) async fn start(
    region: &Region,
    admin: AdminClient<RegionChannel>,
    hosts: &[String],
    driver: &str,
) -> Result<Agents> {
    let amqp = AmqpConfig::new(vec![region.broker_url().parse()?], "ebbtide-bench agents");
    let bus: Arc<dyn Bus> = Arc::new(AmqpBus::open(amqp)?);
    let table: toml::Table = driver.parse()?;
    let settings = &table["driver"]["simulated"];
    let settings = settings.as_table().context("the driver's table")?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let stop = CancellationToken::new();
    let mut running = JoinSet::new();
    for host in hosts {
        let state_dir = region.agent_dir(host);
        std::fs::create_dir_all(&state_dir)?;
        let mut config = AgentConfig::new(host, &state_dir);
        config.queue_prefix = QueuePrefix::new(region.prefix())?;
        let context = DriverContext {
            host: host.clone(),
            state_dir,
            settings: settings.clone(),
            clock: Arc::clone(&clock),
        };
        let driver = registry::build("simulated", &context)?;
        let agent = Agent::new(config, Arc::clone(&bus), driver);
        let stopped = stop.clone();
        running.spawn(async move { Ok(agent.serve(stopped).await?) });
    }
    let agents = Agents { stop, running };
    agents.registered(admin, hosts.len()).await?;
    Ok(agents)
}

impl Agents {
    async fn registered(&self, mut admin: AdminClient<RegionChannel>, count: usize) -> Result<()> {
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            let listed = admin.list_hosts(v1::ListHostsRequest::default()).await?;
            if listed.into_inner().hosts.len() == count {
                return Ok(());
            }
            let pause = Duration::from_millis(100);
            tokio::time::sleep(pause).await;
            waited += pause;
        }
        bail!("not all of {count} hosts have registered within {PATIENCE:?}");
    }

    /// Ends them.
    pub(crate) async fn end(mut self) -> Result<()> {
        self.stop.cancel();
        while let Some(ended) = self.running.join_next().await {
            ended??;
        }
        Ok(())
    }
}
