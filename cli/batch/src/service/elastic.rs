//! The elastic partition: nodes for short jobs of the cluster's users, as many as the load of long
//! ones asks for.

use ebbtide_batch::view::ElasticView;
use ebbtide_batch::{BatchError, BatchSettings, attempt_of};
use ebbtide_batch_service::faults::Faults;
use ebbtide_batch_service::journal::RecordFile;
use ebbtide_burst::slurm::{Ageing, Node, SlurmJob};
use ebbtide_burst::{
    BurstError, BurstEvent, ClusterSnapshot, Decisions, ElasticSettings, Load, Manager, RecordEntry,
};
use ebbtide_shell::errors::CliError;
use ebbtide_slurm::Slurm;
use std::borrow::Cow;

/// How often Slurm's configuration is read again, milliseconds: operators change it seldom.
const CONFIG_MS: i64 = 600_000;

/// The elastic partition at work.
#[derive(Debug)]
pub(crate) struct ElasticPartition<'a> {
    pub(crate) settings: &'a ElasticSettings,
    nodes: Vec<String>,
    /// Nodes of types: neither they nor the jobs of works are part of the users' cluster.
    of_types: Vec<String>,
    pub(crate) manager: Manager,
    began: bool,
    /// When Slurm's configuration is read next.
    config_due: i64,
    /// What was seen at the last look.
    pub(crate) view: Option<ElasticView>,
}

impl<'a> ElasticPartition<'a> {
    /// The partition of these settings, if there is one.
    ///
    /// # Errors
    /// [`BatchError::Setting`].
    pub(crate) fn new(settings: &'a BatchSettings) -> Result<Option<Self>, BatchError> {
        let Some(own) = &settings.elastic else {
            return Ok(None);
        };
        let types = settings.server_types()?.into_iter();
        let options = own.manager_options(settings.node_times())?;
        Ok(Some(Self {
            settings: own,
            nodes: options.nodes.clone(),
            of_types: types.flat_map(|ty| ty.nodes).collect(),
            manager: Manager::new(options)?,
            began: false,
            config_due: i64::MIN,
            view: None,
        }))
    }

    fn users_nodes<'w>(&self, nodes: &'w [Node]) -> Cow<'w, [Node]> {
        if self.of_types.is_empty() {
            return Cow::Borrowed(nodes);
        }
        let users = nodes
            .iter()
            .filter(|node| !self.of_types.contains(&node.name));
        users.cloned().collect()
    }

    fn users_jobs<'w>(&self, jobs: &'w [SlurmJob]) -> Cow<'w, [SlurmJob]> {
        if self.of_types.is_empty() {
            return Cow::Borrowed(jobs);
        }
        let of_types = |job: &SlurmJob| job.nodes.iter().any(|node| self.of_types.contains(node));
        let users = jobs
            .iter()
            .filter(|job| attempt_of(&job.name).is_none() && !of_types(job));
        users.cloned().collect()
    }

    /// Writes down what is new of the users' jobs.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub(crate) fn learn(
        &mut self,
        at: i64,
        nodes: &[Node],
        jobs: &[SlurmJob],
        file: &mut RecordFile,
    ) -> Result<(), BurstError> {
        if !self.began {
            let nodes = self.users_nodes(nodes);
            let stays = nodes.iter().filter(|node| !self.nodes.contains(&node.name));
            let event = BurstEvent::Began {
                stays: stays.map(|node| (node.name.clone(), node.cpus)).collect(),
                preemptible: self.settings.preemptible_price.micros(),
                on_demand: self.settings.on_demand_price.micros(),
            };
            file.note(&RecordEntry { at, event })?;
            self.began = true;
        }
        let facts = file.record.learn(at, &self.users_jobs(jobs), self.settings);
        file.write(&facts)
    }

    /// Reads how Slurm's priorities age, every ten minutes.
    ///
    /// # Errors
    /// [`BurstError::Storage`]. Without an answer jobs may lose their places, which is reported and
    /// no reason to leave nodes alone.
    pub(crate) async fn read_ageing(
        &mut self,
        at: i64,
        slurm: &Slurm,
        file: &mut RecordFile,
        faults: &mut Faults,
    ) -> Result<(), BurstError> {
        // Also after the clock was set back.
        if at < self.config_due && self.config_due <= at + CONFIG_MS {
            return Ok(());
        }
        let config = slurm.run("scontrol", &["show", "config"]).await;
        match config.and_then(|config| Ageing::of(&config)) {
            Ok(ageing) => {
                self.manager.set_ageing(ageing);
                self.config_due = at + CONFIG_MS;
                faults.over("config");
                Ok(())
            }
            Err(error) => faults.lasting(file, "config", &CliError::from(error)),
        }
    }

    /// Looks at the cluster: what is to be done.
    ///
    /// # Errors
    /// As [`Manager::look`].
    pub(crate) fn look(
        &mut self,
        at: i64,
        world: &ClusterSnapshot<'_>,
    ) -> Result<Decisions, BurstError> {
        let (nodes, jobs) = (self.users_nodes(world.nodes), self.users_jobs(world.jobs));
        let world = ClusterSnapshot {
            nodes: &nodes,
            jobs: &jobs,
            ..*world
        };
        let load = Load::of(&world, &self.nodes, self.settings);
        let made = self.manager.look(at, &world, load)?;
        let there = world.instances.iter().filter(|one| one.status.is_there());
        self.view = Some(ElasticView {
            long_load_ratio: made.ratio,
            wanted: made.target,
            there: there.filter(|one| self.has(&one.node)).count(),
            most: self.settings.policy()?.budget(),
        });
        Ok(made)
    }

    /// Whether servers of a node count for the report: also those of nodes that the partition had
    /// before.
    pub(crate) fn counts(&self, node: &str) -> bool {
        !self.of_types.iter().any(|one| one == node)
    }

    /// Whether a node is one of the partition.
    pub(crate) fn has(&self, node: &str) -> bool {
        self.nodes.iter().any(|one| one == node)
    }
}
