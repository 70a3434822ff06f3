//! `--bid`: a server of a cloud by the checkpoint scheme ACC. Near the end of each paid hour the
//! price is looked at twice: at t_cd the job is saved if the price is above the bid, at t_td the
//! server is let go if the price is still above. What is decided there is
//! [`ebbtide_checkpointing::decide`].

use super::place::InstanceNews;
use ebbtide_burst::PoolServer;
use ebbtide_checkpointing::{AccReading, DecisionPoint, EventKind, PaidHours, decide};
use ebbtide_model::Money;
use ebbtide_server_pool::ServerPool;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;

/// From the last checkpoint to the end of the hour: the server is deleted in this time.
pub(super) const MARGIN_MS: i64 = 5_000;

/// What an hour may cost, and what is paid at once.
#[derive(Debug, Clone)]
pub(super) struct Bid {
    /// A_bid.
    pub(super) price: Money,
    /// The hours of a server, milliseconds.
    pub(super) hours: PaidHours,
}

impl Bid {
    /// A bid on servers that are billed by `hour`, for a job whose checkpoints take `cost`.
    ///
    /// # Errors
    /// [`CliError::Usage`] if an hour has no room for that.
    pub(super) fn new(price: Money, hour: Hours, cost: Hours) -> Result<Self, CliError> {
        let millis = |hours: Hours| (hours.0 * 3_600_000.0).min(1e15).round() as i64;
        let (length, checkpoint) = (millis(hour), millis(cost));
        // At t_td the job is saved once more.
        let terminate = checkpoint + MARGIN_MS;
        if checkpoint + terminate >= length {
            return Err(CliError::Usage(format!(
                "--hour {hour} has no room for two checkpoints of {cost} (--cost) and {} s to let the server go",
                MARGIN_MS / 1_000
            )));
        }
        Ok(Self {
            price,
            hours: PaidHours {
                length,
                checkpoint,
                terminate,
            },
        })
    }
}

/// A bid and the server that it is for.
#[derive(Debug)]
pub(super) struct BidWatch {
    bid: Bid,
    flavor: String,
    /// The last decision point at which the price was looked at.
    looked: Option<i64>,
    /// t_cd of the hour in which the job was last told to save.
    saved: Option<i64>,
    /// End of the hour at which the server is let go.
    leaves: Option<i64>,
}

impl BidWatch {
    pub(super) fn new(bid: Bid, flavor: String) -> Self {
        Self {
            bid,
            flavor,
            looked: None,
            saved: None,
            leaves: None,
        }
    }

    /// Whether the server is being let go.
    pub(super) fn lets_go(&self) -> bool {
        self.leaves.is_some()
    }

    /// There is no server any more.
    pub(super) fn forget(&mut self) {
        (self.looked, self.saved, self.leaves) = (None, None, None);
    }

    /// Why no server is to be made now; `None` if the price is within the bid.
    ///
    /// # Errors
    /// The cloud's.
    pub(super) async fn too_dear(&self, pool: &ServerPool) -> Result<Option<String>, CliError> {
        let price = self.price(pool).await?;
        Ok((price > self.bid.price).then(|| self.words(price)))
    }

    /// What follows for a server that runs.
    ///
    /// # Errors
    /// The cloud's, if the price has to be known.
    pub(super) async fn look(
        &mut self,
        pool: &ServerPool,
        server: &PoolServer,
        now: i64,
    ) -> Result<Option<InstanceNews>, CliError> {
        if let Some(end) = self.leaves {
            if now < end {
                return Ok(None);
            }
            // It could not be saved in time, and the next hour is paid.
            self.leaves = None;
            return Ok(Some(InstanceNews::Spared));
        }
        let hours = self.bid.hours;
        let passed = server
            .launched_ms
            .and_then(|launched| hours.passed(launched, now));
        let Some((point, at)) = passed.filter(|(_, at)| self.looked < Some(*at)) else {
            return Ok(None);
        };
        let price = match (self.price(pool).await, point) {
            (Ok(price), _) => Some(price),
            // Not known: a checkpoint costs little.
            (Err(_), DecisionPoint::Checkpoint) => None,
            (Err(error), DecisionPoint::Terminate) => return Err(error),
        };
        self.looked = Some(at);
        let safe = point == DecisionPoint::Terminate && self.saved == Some(at - hours.checkpoint);
        let reading = AccReading::Strict;
        let (decided, words) = match price {
            None => (
                Some(EventKind::Checkpoint),
                "the cloud does not say what an hour costs".to_owned(),
            ),
            Some(price) => (
                decide(point, price, self.bid.price, safe, reading),
                self.words(price),
            ),
        };
        Ok(match decided {
            Some(EventKind::Checkpoint) => {
                self.saved = Some(at);
                Some(InstanceNews::Save(words))
            }
            Some(EventKind::Terminate) => {
                let deadline = at + hours.terminate;
                self.leaves = Some(deadline);
                let words = format!("{} is let go: {words}", server.node);
                Some(InstanceNews::Notice { deadline, words })
            }
            Some(EventKind::Launch) | None => None,
        })
    }

    fn words(&self, price: Money) -> String {
        let bid = self.bid.price;
        format!("an hour of {} costs {price}, the bid is {bid}", self.flavor)
    }

    /// What an hour costs now; nothing where the cloud has no price for it.
    async fn price(&self, pool: &ServerPool) -> Result<Money, CliError> {
        let price = pool.prices().await?.get(&self.flavor).copied();
        Ok(Money::from_micros(price.unwrap_or(0)))
    }
}
