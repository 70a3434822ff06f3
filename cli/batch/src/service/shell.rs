//! One look: read Slurm, the cloud and the marks, write down what follows, do it.

use crate::service::elastic::ElasticPartition;
use crate::service::fault::ServiceError;
use crate::service::marks::{Marks, result};
use crate::service::rehearsal::Rehearsal;
use crate::service::start;
use ebbtide_batch::{
    AttemptResult, BatchAction, BatchController, BatchDecisions, BatchError, BatchSettings,
    BatchWorld, Book, BookEntry, Fact,
};
use ebbtide_batch_service::accounts::learn_servers;
use ebbtide_batch_service::act::Actor;
use ebbtide_batch_service::faults::{Faults, log};
use ebbtide_batch_service::journal::RecordFile;
use ebbtide_batch_service::lines::LineFile;
use ebbtide_batch_service::pool::{PoolOptions, within};
use ebbtide_burst::slurm::{Node, SlurmJob};
use ebbtide_burst::{BurstError, ClusterSnapshot, PoolServer};
use ebbtide_runtime::clock::unix_millis;
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The name of the book in the state directory.
const BOOK: &str = "book.jsonl";
/// Prices are asked for again so long after a call that failed, milliseconds.
const PRICES_AGAIN_MS: i64 = 5_000;

/// The service at work.
pub(crate) struct Service<'a> {
    pub(crate) settings: &'a BatchSettings,
    pool: PoolOptions<'a>,
    /// None while the cloud cannot be reached.
    cloud: Option<Arc<ServerPool>>,
    /// None after its book could not be written: it is read again then.
    controller: Option<BatchController>,
    pub(crate) elastic: Option<ElasticPartition<'a>>,
    /// Whether nothing is changed: what happens in the cluster is written down.
    observe: bool,
    pub(crate) book: LineFile,
    pub(crate) record_file: RecordFile,
    pub(crate) faults: Faults,
    marks: Marks,
    /// What takes the place of Slurm in a rehearsal.
    rehearsal: Option<Rehearsal>,
    pub(crate) prices: BTreeMap<String, u64>,
    /// When they were last asked for and had.
    prices_at: i64,
    /// When they were last asked for.
    prices_asked: i64,
    /// The pool's servers at the last look.
    pub(crate) servers: Vec<PoolServer>,
    /// When Slurm and the cloud were last seen.
    pub(crate) looked: Option<i64>,
    last: String,
}

impl<'a> Service<'a> {
    /// Opens the book and the record.
    ///
    /// # Errors
    /// [`BurstError::Storage`], also if another service has them; [`ebbtide_batch::BatchError`] for
    /// a book or settings that cannot be used.
    pub(crate) fn open(
        settings: &'a BatchSettings,
        pool: PoolOptions<'a>,
        observe: bool,
    ) -> Result<Self, CliError> {
        let record_file = RecordFile::open(&pool.state_dir)?;
        let (book, text) = LineFile::open(&pool.state_dir, BOOK)?;
        let known = Book::parse(&text).map_err(ServiceError::from)?;
        let controller = BatchController::new(settings, known).map_err(ServiceError::from)?;
        let rehearsal = settings.rehearse.then(|| Rehearsal::open(&pool.state_dir));
        let elastic = ElasticPartition::new(settings).map_err(ServiceError::from)?;
        if observe && elastic.is_none() {
            let problem = "it is not there: without it there is nothing to observe";
            return Err(ServiceError::from(BatchError::Setting {
                key: "elastic".to_owned(),
                problem: problem.to_owned(),
            })
            .into());
        }
        Ok(Self {
            rehearsal: rehearsal.transpose()?,
            settings,
            pool,
            cloud: None,
            controller: Some(controller),
            elastic,
            observe,
            book,
            record_file,
            faults: Faults::default(),
            marks: Marks::default(),
            prices: BTreeMap::new(),
            prices_at: i64::MIN,
            prices_asked: i64::MIN,
            servers: Vec::new(),
            looked: None,
            last: String::new(),
        })
    }

    /// The controller, from the book if there is none.
    pub(crate) fn controller(&mut self) -> Result<&mut BatchController, CliError> {
        if self.controller.is_none() {
            let path = self.pool.state_dir.join(BOOK);
            let text = std::fs::read_to_string(&path);
            let text = text.map_err(ebbtide_batch_service::storage("read", &path))?;
            let book = Book::parse(&text).map_err(ServiceError::from)?;
            let made = BatchController::new(self.settings, book).map_err(ServiceError::from)?;
            self.controller = Some(made);
        }
        let missing = || CliError::Write(std::io::Error::other("there is no controller"));
        self.controller.as_mut().ok_or_else(missing)
    }

    /// Writes facts down. If that fails, what the controller has taken in is forgotten: nothing is
    /// done that does not stand in the book.
    pub(crate) fn write(&mut self, facts: &[BookEntry]) -> Result<(), BurstError> {
        let written = self.book.append(facts);
        if written.is_err() {
            self.controller = None;
        }
        written
    }

    /// Looks once.
    ///
    /// # Errors
    /// The record cannot be written.
    pub(crate) async fn look(&mut self) -> Result<(), CliError> {
        match self.reconcile().await {
            Ok(()) => self.faults.over("look"),
            Err(error) => self.faults.lasting(&mut self.record_file, "look", &error)?,
        }
        Ok(())
    }

    async fn reconcile(&mut self) -> Result<(), CliError> {
        let seen = self.slurm().await?;
        let now = unix_millis();
        if let (Some(elastic), Some((nodes, jobs))) = (&mut self.elastic, &seen) {
            elastic.learn(now, nodes, jobs, &mut self.record_file)?;
            if self.observe {
                self.looked = Some(now);
                return Ok(());
            }
            let (slurm, file) = (&self.pool.slurm, &mut self.record_file);
            elastic
                .read_ageing(now, slurm, file, &mut self.faults)
                .await?;
        }
        let cloud = within(self.cloud()).await?;
        let servers = within(cloud.servers()).await?;
        let now = unix_millis();
        let (nodes, jobs) = match seen {
            Some(seen) => seen,
            None => self.rehearse(&servers, now)?,
        };
        within(self.account(&cloud, &servers)).await?;
        let budget = self.pool.within_budget(&self.record_file.record, now);
        self.servers.clone_from(&servers);
        self.looked = Some(now);
        let world = ClusterSnapshot {
            nodes: &nodes,
            jobs: &jobs,
            instances: &servers,
            budget_used_up: budget.is_err(),
            kept: &[],
        };
        match budget {
            Ok(()) => self.faults.over("budget"),
            Err(error) => {
                self.faults
                    .lasting(&mut self.record_file, "budget", &error.into())?;
            }
        }
        // What is wrong with one part does not keep the other from going on.
        let elastic = self.serve_elastic(&cloud, &world, now).await;
        elastic.and(self.serve_works(&cloud, &world, now).await)
    }

    /// Nodes for short jobs come and go.
    async fn serve_elastic(
        &mut self,
        cloud: &ServerPool,
        world: &ClusterSnapshot<'_>,
        now: i64,
    ) -> Result<(), CliError> {
        let Some(elastic) = &mut self.elastic else {
            return Ok(());
        };
        let before = elastic.view;
        let made = elastic.look(now, world)?;
        if let Some(view) = elastic.view.filter(|view| before != Some(*view)) {
            log(&view.to_string());
        }
        for error in made.troubles {
            self.faults.note(&mut self.record_file, &error.into())?;
        }
        let actor = Actor {
            slurm: &self.pool.slurm,
            cloud,
            servers: world.instances,
            signal: &elastic.settings.checkpoint_signal,
        };
        let acted = within(actor.all(&made.actions)).await;
        self.judge("elastic", acted, !made.actions.is_empty())
    }

    /// Members start and end, and the nodes of types with them.
    async fn serve_works(
        &mut self,
        cloud: &ServerPool,
        world: &ClusterSnapshot<'_>,
        now: i64,
    ) -> Result<(), CliError> {
        self.learn_prices(cloud, world.instances, now).await?;
        self.read_marks(now)?;
        let lives = self.record_file.record.lives.values();
        let there = lives.filter(|life| life.end.is_none() && !life.is_paused());
        let paid: BTreeMap<String, (i64, u64)> = there
            .map(|life| (life.node.clone(), life.price()))
            .collect();
        let made = {
            let prices = std::mem::take(&mut self.prices);
            let prices_at = self.prices_at;
            let marks = std::mem::take(&mut self.marks);
            let controller = self.controller()?;
            let works: BTreeMap<_, _> = controller
                .book()
                .works
                .iter()
                .filter(|(_, book)| book.running().next().is_some())
                .map(|(id, book)| (*id, book.work.clone()))
                .collect();
            let mark = |work, member| marks.mark(work, member);
            let left = |work, member, attempt| {
                let work = works.get(&work);
                work.map_or_else(AttemptResult::default, |work| result(work, member, attempt))
            };
            let paid = |node: &str| paid.get(node).copied();
            let world = BatchWorld {
                burst: *world,
                prices: &prices,
                prices_at,
                paid: &paid,
                mark: &mark,
                result: &left,
            };
            let made = controller.look(now, &world).map_err(ServiceError::from);
            self.prices = prices;
            self.marks = marks;
            made?
        };
        self.write(&made.facts)?;
        for entry in &made.facts {
            self.log_bag(entry);
        }
        self.carry_out(cloud, world.instances, made).await
    }

    /// How long until a backup has to start at the latest, if that lies ahead.
    pub(crate) fn wake_in(&self) -> Option<Duration> {
        let at = self.controller.as_ref()?.wake_at()?;
        let ahead = u64::try_from(at - unix_millis()).ok().filter(|ms| *ms > 0);
        ahead.map(Duration::from_millis)
    }

    /// Slurm's nodes and jobs; `None` in a rehearsal.
    async fn slurm(&self) -> Result<Option<(Vec<Node>, Vec<SlurmJob>)>, CliError> {
        if self.rehearsal.is_some() {
            return Ok(None);
        }
        let nodes = self.pool.slurm.nodes().await?;
        Ok(Some((nodes, self.pool.slurm.jobs().await?)))
    }

    /// The nodes and jobs of a rehearsal.
    fn rehearse(
        &mut self,
        servers: &[PoolServer],
        now: i64,
    ) -> Result<(Vec<Node>, Vec<SlurmJob>), CliError> {
        self.controller()?;
        let (Some(rehearsal), Some(controller)) = (&mut self.rehearsal, &self.controller) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let (book, nodes) = (controller.book(), self.pool.nodes());
        let marks = &mut self.marks;
        Ok(rehearsal.look(book, &nodes, servers, now, marks)?)
    }

    /// Reads the marks of open works. Of a work whose directory cannot be read nothing is started;
    /// others go on.
    fn read_marks(&mut self, now: i64) -> Result<(), CliError> {
        if self.rehearsal.is_some() {
            return Ok(());
        }
        let mut marks = std::mem::take(&mut self.marks);
        let book = self.controller()?.book();
        let unread = marks.read(book, now);
        marks.learn(book);
        self.marks = marks;
        match unread {
            None => self.faults.over("marks"),
            Some((path, error)) => {
                let error = BurstError::Storage {
                    what: "use",
                    path,
                    problem: error.to_string(),
                };
                self.faults
                    .lasting(&mut self.record_file, "marks", &error.into())?;
            }
        }
        Ok(())
    }

    /// Logs what the executor of a bag by maps was told.
    fn log_bag(&self, entry: &BookEntry) {
        let works = self.controller.as_ref().map(|one| &one.book().works);
        let book = works.and_then(|works| works.get(&entry.work));
        let (Some(book), Fact::Bag { what }) = (book, &entry.fact) else {
            return;
        };
        if let Some(bag) = &book.bag {
            log(&format!("work {}: {}", entry.work, bag.words(*what)));
        }
    }

    async fn carry_out(
        &mut self,
        cloud: &ServerPool,
        servers: &[PoolServer],
        made: BatchDecisions,
    ) -> Result<(), CliError> {
        for error in made.troubles {
            self.faults.note(&mut self.record_file, &error.into())?;
        }
        for error in made.problems {
            let error = ServiceError::from(error);
            self.faults.note(&mut self.record_file, &error.into())?;
        }
        let actor = Actor {
            slurm: &self.pool.slurm,
            cloud,
            servers,
            signal: "TERM",
        };
        let acted = match &mut self.rehearsal {
            Some(rehearsal) => {
                let nodes = &made.nodes;
                rehearsal.act(cloud, servers, nodes, &made.jobs).await
            }
            None => within(actor.all(&made.nodes)).await,
        };
        let acts = !made.nodes.is_empty() || !made.jobs.is_empty();
        let mut first = acted;
        for action in &made.jobs {
            let Some(controller) = &self.controller else {
                break;
            };
            let done = match &self.rehearsal {
                Some(_) => Ok(()),
                None => start::act(self.settings, &self.pool.slurm, controller, action).await,
            };
            log(&match &done {
                Ok(()) => describe(action),
                Err(error) => format!("{}: not done: {error}", describe(action)),
            });
            if first.is_ok() {
                first = done.map_err(CliError::from);
            }
        }
        let there = servers.iter().filter(|one| one.status.is_there());
        let elastic = self.elastic.as_ref();
        let own = |node: &str| elastic.is_none_or(|elastic| !elastic.has(node));
        let there = there.filter(|one| own(&one.node)).count();
        let line = format!("servers wanted by type {:?}, {there} there", made.wanted);
        if line != self.last && !made.wanted.is_empty() {
            log(&line);
            self.last = line;
        }
        self.judge("act", first, acts)
    }

    /// Reports what came of actions.
    fn judge(
        &mut self,
        place: &str,
        acted: Result<(), CliError>,
        acts: bool,
    ) -> Result<(), CliError> {
        match acted {
            Err(error) => self.faults.lasting(&mut self.record_file, place, &error)?,
            // Nothing to do is no sign that what was refused would not be refused again.
            Ok(()) if acts => self.faults.over(place),
            Ok(()) => {}
        }
        Ok(())
    }

    async fn account(
        &mut self,
        cloud: &ServerPool,
        servers: &[PoolServer],
    ) -> Result<(), CliError> {
        self.controller()?;
        let (Some(controller), elastic) = (&self.controller, self.elastic.as_ref()) else {
            return Ok(());
        };
        let own = |node: &str| match (controller.type_of(node), elastic) {
            (Some(ty), _) => ty.price,
            (None, Some(elastic)) => elastic.settings.preemptible_price.micros(),
            (None, None) => 0,
        };
        let up = |id: &str| {
            controller.has_come_up(id)
                || elastic.is_some_and(|elastic| elastic.manager.has_come_up(id))
        };
        learn_servers(&mut self.record_file, &self.pool, cloud, servers, own, up).await
    }

    /// Asks for prices every `policy.price_seconds`, and when a work with a bid has to know one.
    /// What was last heard stays while the cloud does not say more.
    async fn learn_prices(
        &mut self,
        cloud: &ServerPool,
        servers: &[PoolServer],
        now: i64,
    ) -> Result<(), CliError> {
        let every = (self.settings.policy.price_seconds * 1_000.0) as i64;
        let (heard, asked) = (self.prices_at, self.prices_asked);
        let wanted = self.controller()?.wants_prices(now, heard, servers);
        let pause = if heard < asked { PRICES_AGAIN_MS } else { 0 };
        let again = if wanted { pause } else { every };
        if now < asked.saturating_add(again) && now >= asked {
            return Ok(());
        }
        self.prices_asked = now;
        match within(cloud.prices()).await {
            Ok(prices) => {
                (self.prices, self.prices_at) = (prices, now);
                self.faults.over("prices");
            }
            Err(error) => self
                .faults
                .lasting(&mut self.record_file, "prices", &error)?,
        }
        Ok(())
    }

    async fn cloud(&mut self) -> Result<Arc<ServerPool>, CliError> {
        if let Some(cloud) = &self.cloud {
            return Ok(Arc::clone(cloud));
        }
        let cloud = Arc::new(self.pool.connect().await?);
        self.cloud = Some(Arc::clone(&cloud));
        Ok(cloud)
    }
}

fn describe(action: &BatchAction) -> String {
    match action {
        BatchAction::Start {
            work,
            member,
            attempt,
            node,
            ..
        } => format!(
            "{node}: start {}",
            ebbtide_batch::job_name(*work, *member, *attempt)
        ),
        BatchAction::Save { job } => format!("job {job}: save and end"),
        BatchAction::Checkpoint { job } => format!("job {job}: save and go on"),
        BatchAction::Stop { job } => format!("job {job}: stop"),
    }
}
