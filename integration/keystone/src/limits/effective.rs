//! Which limit holds for a project. Pure.
//!
//! With the model `flat` it is the project's own, else the registered default, as in oslo.limit.
//! With `strict_two_level`, which oslo.limit does not implement, it is the project's own, else that
//! of its domain, else the registered default; and the domain's limit is a ceiling for the sum over
//! the domain's projects.

use super::SERVICE_TYPE;
use crate::error::KeystoneError;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// How Keystone wants limits to be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EnforcementModel {
    /// Each project by itself.
    Flat,
    /// A domain's limit holds for all of its projects together, too.
    StrictTwoLevel,
}

impl EnforcementModel {
    /// Reads the answer to `GET /v3/limits/model`.
    ///
    /// # Errors
    /// [`KeystoneError::BadAnswer`], [`KeystoneError::ModelUnknown`].
    pub fn from_answer(answer: &Value) -> Result<Self, KeystoneError> {
        match answer["model"]["name"].as_str() {
            Some("flat") => Ok(Self::Flat),
            Some("strict_two_level" | "strict-two-level") => Ok(Self::StrictTwoLevel),
            Some(other) => Err(KeystoneError::ModelUnknown(other.to_owned())),
            None => Err(KeystoneError::BadAnswer(
                "it is no enforcement model".to_owned(),
            )),
        }
    }
}

/// An amount that may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// At most this, in the unit of the resource.
    AtMost(u64),
    /// Any amount: −1 in Keystone.
    Unlimited,
}

impl Limit {
    /// Keystone's number.
    #[must_use]
    pub fn from_number(number: i64) -> Self {
        u64::try_from(number).map_or(Self::Unlimited, Self::AtMost)
    }

    /// Whether so much fits.
    #[must_use]
    pub fn allows(self, amount: u64) -> bool {
        match self {
            Self::AtMost(limit) => amount <= limit,
            Self::Unlimited => true,
        }
    }
}

/// A row of `/v3/limits` or `/v3/registered_limits`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct LimitRow {
    pub resource_name: String,
    /// The region; `None`: all regions.
    #[serde(default)]
    pub region_id: Option<String>,
    #[serde(alias = "resource_limit", alias = "default_limit")]
    pub amount: i64,
}

impl LimitRow {
    /// Reads a list with this name.
    ///
    /// # Errors
    /// [`KeystoneError::BadAnswer`].
    pub fn list(mut answer: Value, name: &str) -> Result<Vec<Self>, KeystoneError> {
        let rows = answer.get_mut(name).map(Value::take).unwrap_or_default();
        let bad = |error| KeystoneError::BadAnswer(format!("list {name}: {error}"));
        serde_json::from_value(rows).map_err(bad)
    }
}

/// The limit of a resource in a region: that of the region, else that of all regions.
fn find(rows: &[LimitRow], resource: &str, region: Option<&str>) -> Option<Limit> {
    let of = |region: Option<&str>| {
        let fits =
            |row: &&LimitRow| row.resource_name == resource && row.region_id.as_deref() == region;
        rows.iter()
            .find(fits)
            .map(|row| Limit::from_number(row.amount))
    };
    of(region).or_else(|| of(None))
}

/// What holds for every project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredLimits {
    pub model: EnforcementModel,
    /// Keystone's id of the service.
    pub service_id: String,
    pub region: Option<String>,
    /// The defaults.
    pub rows: Vec<LimitRow>,
}

/// Rows of a project's domain.
pub type DomainLimits = Vec<LimitRow>;

/// Where a limit is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitSource {
    /// The project has a limit of its own.
    Project,
    Domain,
    /// The registered default.
    Registered,
}

/// The limit that holds for a resource of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectiveLimit {
    /// The amount.
    pub limit: Limit,
    /// Where it is from.
    pub source: LimitSource,
    /// With `strict_two_level`: what all projects of the domain may use together.
    pub domain_total: Option<Limit>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectLimits {
    known: BTreeMap<&'static str, EffectiveLimit>,
    region: Option<String>,
}

impl ProjectLimits {
    /// The limits that hold for these resources. `domain` counts with `strict_two_level` only.
    #[must_use]
    pub fn new(
        registered: &RegisteredLimits,
        project: &[LimitRow],
        domain: &[LimitRow],
        resources: &[&'static str],
    ) -> Self {
        let region = registered.region.as_deref();
        let limit_of = |resource: &str| {
            // A limit without a registered one cannot be created, and ends with it.
            let default = find(&registered.rows, resource, region)?;
            let of_domain = match registered.model {
                EnforcementModel::Flat => None,
                EnforcementModel::StrictTwoLevel => find(domain, resource, region),
            };
            let own = find(project, resource, region).map(|limit| (limit, LimitSource::Project));
            let (limit, source) = own
                .or_else(|| of_domain.map(|limit| (limit, LimitSource::Domain)))
                .unwrap_or((default, LimitSource::Registered));
            Some(EffectiveLimit {
                limit,
                source,
                domain_total: of_domain,
            })
        };
        let known = resources
            .iter()
            .filter_map(|resource| Some((*resource, limit_of(resource)?)));
        Self {
            known: known.collect(),
            region: registered.region.clone(),
        }
    }

    /// The limit of a resource.
    ///
    /// # Errors
    /// [`KeystoneError::LimitUnknown`] if Keystone has none; oslo.limit allows nothing then.
    pub fn get(&self, resource: &str) -> Result<EffectiveLimit, KeystoneError> {
        self.known
            .get(resource)
            .copied()
            .ok_or_else(|| KeystoneError::LimitUnknown {
                resource: resource.to_owned(),
                service_type: SERVICE_TYPE.to_owned(),
                region: self.region.clone().unwrap_or_else(|| "any".to_owned()),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{PREEMPTIBLE_SERVERS, PREEMPTIBLE_VCPUS, RESOURCES};
    use super::*;
    use serde_json::json;

    fn row(resource: &str, region: Option<&str>, amount: i64) -> LimitRow {
        LimitRow {
            resource_name: resource.to_owned(),
            region_id: region.map(str::to_owned),
            amount,
        }
    }

    fn registered(model: EnforcementModel, rows: Vec<LimitRow>) -> RegisteredLimits {
        RegisteredLimits {
            model,
            service_id: "s".to_owned(),
            region: Some("R1".to_owned()),
            rows,
        }
    }

    fn servers(
        model: EnforcementModel,
        project: &[LimitRow],
        domain: &[LimitRow],
    ) -> EffectiveLimit {
        let registered = registered(model, vec![row(PREEMPTIBLE_SERVERS, Some("R1"), 10)]);
        let limits = ProjectLimits::new(&registered, project, domain, &RESOURCES);
        limits.get(PREEMPTIBLE_SERVERS).unwrap()
    }

    #[test]
    fn a_project_has_its_own_limit_or_the_registered_one() {
        let own = [row(PREEMPTIBLE_SERVERS, Some("R1"), 3)];
        let with_own = servers(EnforcementModel::Flat, &own, &[]);
        assert_eq!(
            (with_own.limit, with_own.source),
            (Limit::AtMost(3), LimitSource::Project)
        );
        let without = servers(EnforcementModel::Flat, &[], &[]);
        assert_eq!(
            (without.limit, without.source),
            (Limit::AtMost(10), LimitSource::Registered)
        );
    }

    #[test]
    fn a_domain_counts_with_two_levels_only() {
        let domain = [row(PREEMPTIBLE_SERVERS, Some("R1"), 5)];
        let flat = servers(EnforcementModel::Flat, &[], &domain);
        assert_eq!((flat.limit, flat.domain_total), (Limit::AtMost(10), None));
        let strict = servers(EnforcementModel::StrictTwoLevel, &[], &domain);
        assert_eq!(
            (strict.limit, strict.source),
            (Limit::AtMost(5), LimitSource::Domain)
        );
        let own = [row(PREEMPTIBLE_SERVERS, Some("R1"), 3)];
        let strict = servers(EnforcementModel::StrictTwoLevel, &own, &domain);
        assert_eq!(strict.limit, Limit::AtMost(3));
        assert_eq!(strict.domain_total, Some(Limit::AtMost(5)));
    }

    #[test]
    fn a_limit_of_the_region_comes_before_one_of_all_regions() {
        let rows = [
            row(PREEMPTIBLE_SERVERS, None, 1),
            row(PREEMPTIBLE_SERVERS, Some("R2"), 2),
            row(PREEMPTIBLE_SERVERS, Some("R1"), 3),
        ];
        let find = |region| find(&rows, PREEMPTIBLE_SERVERS, region);
        assert_eq!(find(Some("R1")), Some(Limit::AtMost(3)));
        assert_eq!(find(Some("R3")), Some(Limit::AtMost(1)));
        assert_eq!(find(None), Some(Limit::AtMost(1)));
    }

    #[test]
    fn a_limit_that_keystone_does_not_know_is_an_error_with_a_command() {
        let registered = registered(EnforcementModel::Flat, Vec::new());
        let own = [row(PREEMPTIBLE_VCPUS, Some("R1"), 3)];
        let limits = ProjectLimits::new(&registered, &own, &[], &RESOURCES);
        let error = limits.get(PREEMPTIBLE_VCPUS).unwrap_err();
        assert_eq!(
            (error.code(), error.meaning().status()),
            ("EB-KEYSTONE-015", 403)
        );
        assert!(
            error
                .to_string()
                .contains("openstack registered limit create"),
            "{error}"
        );
    }

    #[test]
    fn minus_one_is_no_limit() {
        assert!(Limit::from_number(-1).allows(u64::MAX));
        assert!(Limit::from_number(0).allows(0) && !Limit::from_number(0).allows(1));
    }

    #[test]
    fn answers_of_keystone_are_read() {
        let answer = json!({"limits": [{"id": "l", "project_id": "p", "domain_id": null,
            "service_id": "s", "region_id": null, "resource_name": "preemptible_servers",
            "resource_limit": 4, "description": null}], "links": {"next": null}});
        let rows = LimitRow::list(answer, "limits").unwrap();
        assert_eq!(rows, [row(PREEMPTIBLE_SERVERS, None, 4)]);
        for bad in [json!({}), json!({"limits": 1}), json!({"limits": [{}]})] {
            assert_eq!(
                LimitRow::list(bad, "limits").unwrap_err().code(),
                "EB-KEYSTONE-012"
            );
        }
        let model = |name: Value| EnforcementModel::from_answer(&json!({"model": {"name": name}}));
        assert_eq!(
            model(json!("strict_two_level")),
            Ok(EnforcementModel::StrictTwoLevel)
        );
        assert_eq!(model(json!("tree")).unwrap_err().code(), "EB-KEYSTONE-018");
        assert_eq!(model(Value::Null).unwrap_err().code(), "EB-KEYSTONE-012");
    }
}
