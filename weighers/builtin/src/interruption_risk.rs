//! Places preemptible instances where an interruption during their work is least likely. It does
//! not rank hosts for normal requests.
//!
//! - Raw number: the probability, 0 to 1, that a new instance is not interrupted during its work. 0
//!   for all hosts if the request is normal.
//! - Normalised: unchanged, on the fixed scale from 0 to 1. So a difference counts by its size, not
//!   by the number of hosts to compare, and a normal request adds nothing to any host.
//! - Multiplier: `interruption_risk_weight_multiplier`, default 10,000: a difference of 0.001 gives
//!   10 and outweighs Nova's ordinary weighers (9); smaller ones do not. Aggregates may set the
//!   same key in their metadata. It does not interfere with the weighers about evictions: those
//!   matter for normal requests, to which it adds nothing.
//! - Duration of the work: the flavor's `ebbtide:expected_seconds`, else
//!   `engine.risk_horizon_seconds`; never longer than the flavor's maximum lifetime. The shorter
//!   the work, the smaller all risks, and the less this weigher counts.
//! - Needs `engine.interruption_model`: how soon instances are interrupted, as
//!   `ebbtide-lab model fit --output json` writes it, with lives that users ended treated as
//!   censored (`--method mle`; `--from-region` does so). A host uses the nearest group: the
//!   request's flavor in its zone, the flavor, the zone, all.
//! - Negative gathers preemptible instances where they are interrupted most: of use to keep the
//!   other hosts undisturbed.
//!
//! # The risk of a host
//! The model is the bathtub paper's: S(t) is the share of instances that have not been interrupted
//! at age t. A new instance whose work lasts T is not interrupted during it with probability S(T).
//! That is an average over the hosts of its group. Hosts differ by their two states. A preemptible
//! instance is interrupted when normal ones claim its capacity. What normal ones can claim of a
//! host is its free capacity in the normal state h_n, whichever preemptible ones are there. If
//! normal instances have left little of it, few requests fit at all, and an instance in that gap is
//! hardly ever evicted; a host that is full of preemptible instances, or empty, is open to every
//! request. So hazards are taken as proportional to that capacity (proportional hazards, as Cox
//! 1972): with n(host) instances of the request's size fitting into h_n, and n̄ the mean over the
//! hosts that are compared,
//!
//! > chance = S(T) ^ (n(host) / n̄)
//!
//! The mean of the exponents is 1, so that the model's own hazard is kept on average. The ages of
//! the instances already there do not count: they say nothing about the *next* one, whose age is 0
//! on every host. For what it gains, and where it gains nothing, see `docs/plugins/weighers.md`,
//! "What the risk weigher gains".
//!
//! Source: Kadupitiya et al., HPDC 2020, section 4 (place a job by its chance to be preempted while
//! it runs); the exposure is our own.

use ebbtide_model::flavor::{EXPECTED_SECONDS, MAX_LIFETIME_SECONDS};
use ebbtide_model::{LifeTable, LifeTables};
use ebbtide_weigher_api::{
    Bounds, Column, Fact, FactColumn, HostBatch, RequestView, Weigher, WeigherError, WeigherForm,
};

pub(crate) const NAME: &str = "interruption_risk";

/// A difference of one in a thousand gives 10 and outweighs Nova's ordinary weighers together.
pub const DEFAULT_MULTIPLIER: f64 = 10_000.0;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct InterruptionRisk {
    horizon_seconds: f64,
    interruptions: Option<LifeTables>,
    facts: Vec<Fact>,
}

impl InterruptionRisk {
    /// A weigher with the horizon, which [`WeigherOptions`](crate::WeigherOptions) has checked, and
    /// the model of interruptions.
    pub(crate) fn new(horizon_seconds: u32, interruptions: Option<LifeTables>) -> Self {
        let zones = interruptions.as_ref().is_some_and(LifeTables::knows_zones);
        Self {
            horizon_seconds: f64::from(horizon_seconds),
            interruptions,
            // Most models have no zones, and then the caller need not supply them.
            facts: zones
                .then_some(Fact::AvailabilityZone)
                .into_iter()
                .collect(),
        }
    }

    /// The model, if the weigher ranks hosts for this request.
    fn tables_for(&self, request: &RequestView<'_>) -> Option<&LifeTables> {
        let interruptions = self.interruptions.as_ref();
        interruptions.filter(|_| request.preemptible)
    }

    /// Expected duration of an instance's work, in seconds.
    fn duration(&self, request: &RequestView<'_>) -> f64 {
        let said = |wanted: &str| {
            let mut specs = request.details.extra_specs.iter();
            let (_, value) = specs.find(|(key, _)| *key == wanted)?;
            // The flavor was checked when the request was read.
            value.parse::<u32>().ok().map(f64::from)
        };
        let expected = said(EXPECTED_SECONDS).unwrap_or(self.horizon_seconds);
        said(MAX_LIFETIME_SECONDS).map_or(expected, |most| expected.min(most))
    }
}

/// The model of each zone, computed once for each zone.
struct Zones<'a> {
    tables: &'a LifeTables,
    flavor: &'a str,
    column: Option<&'a ebbtide_weigher_api::Texts>,
    chances: Vec<Option<f64>>,
}

impl Zones<'_> {
    /// The probability for an average host of this host's zone.
    fn chance(&mut self, host: usize, seconds: f64) -> f64 {
        let code = self.column.and_then(|texts| texts.codes.get(host).copied());
        let code = code.map_or(0, |code| code as usize);
        if let Some(Some(known)) = self.chances.get(code) {
            return *known;
        }
        let zone = self.column.map_or("", |texts| texts.get(host));
        let table: &LifeTable = self.tables.find(self.flavor, zone);
        let chance = table.lives_on(0.0, seconds);
        if let Some(place) = self.chances.get_mut(code) {
            *place = Some(chance);
        }
        chance
    }
}

impl Weigher for InterruptionRisk {
    fn name(&self) -> &str {
        NAME
    }

    fn multiplier_key(&self) -> &str {
        "interruption_risk_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        DEFAULT_MULTIPLIER
    }

    fn needs(&self) -> &[Column] {
        &[Column::NormalRoom]
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            min: Some(0.0),
            max: Some(1.0),
        }
    }

    fn weigh(
        &self,
        request: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        let rooms = hosts.column(Column::NormalRoom)?;
        hosts.check_room(out)?;
        // Whole numbers: their sum is exact and does not depend on the order of the hosts.
        let mean = rooms.iter().sum::<f64>() / rooms.len().max(1) as f64;
        let Some(tables) = self.tables_for(request).filter(|_| mean > 0.0) else {
            // The request is normal, or the scheduler has no normal state: then its column is 0 on
            // every host.
            out.fill(0.0);
            return Ok(());
        };
        let column = match self.facts.first() {
            None => None,
            Some(fact) => match hosts.fact(fact)? {
                FactColumn::Texts(texts) => Some(texts),
                FactColumn::Numbers(_) => return Err(WeigherError::MissingFact(fact.clone())),
            },
        };
        let mut zones = Zones {
            tables,
            flavor: request.details.flavor,
            column,
            chances: vec![None; column.map_or(1, |texts| texts.texts.len().max(1))],
        };
        let seconds = self.duration(request);
        for (host, (out, room)) in out.iter_mut().zip(rooms).enumerate() {
            *out = zones.chance(host, seconds).powf(room / mean);
        }
        Ok(())
    }

    fn form(&self, request: &RequestView<'_>) -> WeigherForm {
        match self.tables_for(request) {
            None => WeigherForm::Constant(0.0),
            Some(_) => WeigherForm::Opaque,
        }
    }
}
