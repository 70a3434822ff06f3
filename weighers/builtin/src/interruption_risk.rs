//! Places preemptible instances where they will probably not be interrupted while their work lasts. Says nothing about normal ones.
//!
//! - Raw number: the chance, 0 to 1, that a new instance is not interrupted for as long as its work takes. 0 for all hosts if the request is normal.
//! - Normalised: as it is, on the fixed scale from 0 to 1. So a difference counts by how large it is, not by how many hosts there are to compare, and for a
//!   normal request nothing is added to anybody.
//! - Multiplier: `interruption_risk_weight_multiplier`, default 10,000: a difference of one in a thousand gives 10 and outweighs Nova's ordinary
//!   weighers (9); smaller ones leave them their say. Aggregates may set the same key in their metadata. It does not come into the way of the weighers about
//!   evictions: those are about normal requests, for which it says nothing.
//! - How long the work takes: what the flavor says (`ebbtide:expected_seconds`), else `engine.risk_horizon_seconds`; never longer than its maximum
//!   lifetime. The shorter the work, the smaller all risks, and the less this weigher counts.
//! - Needs `engine.interruption_model`: how soon instances are interrupted, as `ebbtide model fit --output json` writes it of lives that users ended
//!   as censored (`--method mle`; `--from-region` does so). A host goes by the nearest group: the request's flavor in its zone, the flavor, the zone, all.
//! - Negative gathers preemptible instances where they are wanted most: of use to keep the other hosts calm.
//!
//! # The risk of a host
//! The model is the bathtub paper's: S(t) is the share of instances that have not been interrupted at age t, and a new one is not interrupted while its work lasts, T, with
//! chance S(T). That is an average over the hosts of its group. What makes hosts differ are the two states. A preemptible instance is
//! interrupted when normal ones claim its room, and what they can claim of a host is its room in the normal state h_n, whoever of the preemptible ones
//! is there. Where normal instances have left little of it few requests fit at all, and an instance in that gap is hardly ever in the way; a host that is full of
//! preemptible instances, or empty, is open to every request. So hazards are taken as proportional to that room (proportional hazards, as Cox 1972):
//! with n(host) instances of the request's size fitting into h_n, and n̄ the mean over the hosts that are compared,
//!
//! > chance = S(T) ^ (n(host) / n̄)
//!
//! The mean of the exponents is 1, so that the model's own hazard is kept on the average. The ages of those who are there already do not count: they are no
//! sign of how the *next* one will fare, whose age is 0 wherever it goes. What it gains, and where it gains nothing: `docs/weighers.md`, "What the risk weigher
//! gains".
//!
//! Source: Kadupitiya et al., HPDC 2020, section 4 (place a job by its chance to be preempted while it runs); the exposure is our own.

use crate::columns;
use ebbtide_model::flavor::{EXPECTED_SECONDS, MAX_LIFETIME_SECONDS};
use ebbtide_model::{LifeTable, LifeTables};
use ebbtide_weigher_api::{
    Bounds, Column, Fact, FactColumn, HostBatch, RequestView, Weigher, WeigherError, WeigherForm,
};

/// Its name.
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
    /// With the horizon, which [`WeigherOptions`](crate::WeigherOptions) has checked, and what is known of interruptions.
    pub(crate) fn new(horizon_seconds: u32, interruptions: Option<LifeTables>) -> Self {
        let zones = interruptions.as_ref().is_some_and(LifeTables::knows_zones);
        Self {
            horizon_seconds: f64::from(horizon_seconds),
            interruptions,
            // Most models know no zones, and then nobody has to be asked for them.
            facts: zones
                .then_some(Fact::AvailabilityZone)
                .into_iter()
                .collect(),
        }
    }

    /// The model, if there is something to say about this request.
    fn asked(&self, request: &RequestView<'_>) -> Option<&LifeTables> {
        let interruptions = self.interruptions.as_ref();
        interruptions.filter(|_| request.preemptible)
    }

    /// How long the work of an instance takes, in seconds.
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

/// The model of each zone, worked out once a zone.
struct Zones<'a> {
    tables: &'a LifeTables,
    flavor: &'a str,
    column: Option<&'a ebbtide_weigher_api::Texts>,
    chances: Vec<Option<f64>>,
}

impl Zones<'_> {
    /// The chance of an average host where this one is.
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
        columns::check_room(hosts, out)?;
        // Whole numbers: their sum is exact and does not depend on the order of the hosts.
        let mean = rooms.iter().sum::<f64>() / rooms.len().max(1) as f64;
        let Some(tables) = self.asked(request).filter(|_| mean > 0.0) else {
            // Nothing to say, or nobody who could: a scheduler that knows no normal state has no room in it anywhere.
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
        match self.asked(request) {
            None => WeigherForm::Constant(0.0),
            Some(_) => WeigherForm::Opaque,
        }
    }
}
