//! The table of every call of the API and what it needs. What does not stand here is refused.

use crate::caller::{Caller, Role};
use crate::error::AccessError;

/// What a call needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessRequirement {
    /// Nothing, not even a name: for load balancers.
    Nothing,
    /// Any role. A tenant gets what is its own.
    AnyRole,
    /// To see the whole region: reader or operator.
    SeeAll,
    /// To change something: operator, or the tenant that owns it.
    Change,
    /// Operator.
    Operate,
}

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessRule {
    /// `/package.Service/Method`, as on the wire.
    pub method: &'static str,
    /// What it needs.
    pub need: AccessRequirement,
    /// True if the answer may take as long as a grace period, or is a stream without end. The
    /// request timeout does not apply to such a call.
    pub waits: bool,
}

macro_rules! rules {
    ($($method:literal $need:ident $($waits:ident)?;)+) => {
        /// Every call.
        pub const RULES: &[AccessRule] = &[$(AccessRule {
            method: $method,
            need: AccessRequirement::$need,
            waits: rules!(@ $($waits)?),
        }),+];
    };
    (@ waits) => { true };
    (@) => { false };
}

rules! {
    "/ebbtide.v1.Servers/CreateServers" Change;
    "/ebbtide.v1.Servers/GetServer" AnyRole;
    "/ebbtide.v1.Servers/ListServers" AnyRole;
    "/ebbtide.v1.Servers/DeleteServer" Change;
    "/ebbtide.v1.Servers/ReleaseServer" Change;
    "/ebbtide.v1.Servers/CreateServerGroup" Change;
    "/ebbtide.v1.Servers/ListServerGroups" AnyRole;
    "/ebbtide.v1.Servers/DeleteServerGroup" Change;
    "/ebbtide.v1.Servers/GetEvacuation" AnyRole;
    "/ebbtide.v1.Servers/ListEvacuations" AnyRole;

    "/ebbtide.v1.Market/ListLives" AnyRole;
    // Prices are public: the answer is the same for every caller.
    "/ebbtide.v1.Market/ListPrices" AnyRole;
    "/ebbtide.v1.Market/ListPriceHistory" AnyRole;
    "/ebbtide.v1.Market/ListBills" AnyRole;
    "/ebbtide.v1.Market/ListBilledHours" AnyRole;
    // A tenant gets other tenants' lifetimes only in batches.
    "/ebbtide.v1.Market/GetAdvice" AnyRole;

    // Claims without starting: for operators of hypervisors, not for tenants.
    "/ebbtide.v1.Scheduler/SelectDestinations" Operate waits;
    "/ebbtide.v1.Scheduler/WhatIf" AnyRole;
    "/ebbtide.v1.Scheduler/Explain" AnyRole;
    "/ebbtide.v1.Scheduler/ListDecisions" AnyRole;
    "/ebbtide.v1.Scheduler/Watch" AnyRole waits;
    "/ebbtide.v1.Scheduler/RegionSummary" SeeAll;

    "/ebbtide.v1.Admin/ListHosts" SeeAll;
    "/ebbtide.v1.Admin/GetHost" SeeAll;
    "/ebbtide.v1.Admin/DisableHost" Operate;
    "/ebbtide.v1.Admin/EnableHost" Operate;
    "/ebbtide.v1.Admin/RemoveHost" Operate;
    "/ebbtide.v1.Admin/ReadmitHost" Operate;
    "/ebbtide.v1.Admin/ReclaimHost" Operate;
    "/ebbtide.v1.Admin/GetReclaim" SeeAll;
    "/ebbtide.v1.Admin/ListReclaims" SeeAll;
    "/ebbtide.v1.Admin/ReturnHost" Operate;
    "/ebbtide.v1.Admin/CreateFlavor" Operate;
    // Tenants choose from them.
    "/ebbtide.v1.Admin/ListFlavors" AnyRole;
    "/ebbtide.v1.Admin/GetFlavor" AnyRole;
    "/ebbtide.v1.Admin/DeleteFlavor" Operate;
    "/ebbtide.v1.Admin/PutAggregate" Operate;
    "/ebbtide.v1.Admin/ListAggregates" SeeAll;
    "/ebbtide.v1.Admin/DeleteAggregate" Operate;
    "/ebbtide.v1.Admin/PutBudget" Operate;
    "/ebbtide.v1.Admin/ListBudgets" AnyRole;
    "/ebbtide.v1.Admin/ListPlugins" SeeAll;
    "/ebbtide.v1.Plugins/AddPlugin" Operate;
    "/ebbtide.v1.Plugins/RemovePlugin" Operate;
    "/ebbtide.v1.Plugins/ChangePlugin" Operate;
    "/ebbtide.v1.Plugins/UseCostModule" Operate;
    "/ebbtide.v1.Plugins/ShadowReport" SeeAll;
    // Every tenant's servers are in it.
    "/ebbtide.v1.Plugins/RecordRegion" SeeAll;
    "/ebbtide.v1.Admin/DeleteBudget" Operate;
    "/ebbtide.v1.Admin/AdoptServer" Operate;
    "/ebbtide.v1.Admin/Audit" SeeAll;
    "/ebbtide.v1.Admin/Reconcile" Operate;

    "/grpc.health.v1.Health/Check" Nothing;
    "/grpc.health.v1.Health/Watch" Nothing waits;
    // The contract is public, but an unknown client has no need to read it from a region.
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo" AnyRole waits;
}

/// The rule of a call; `None` if there is none, and the call is to be refused.
#[must_use]
pub fn rule_of(method: &str) -> Option<&'static AccessRule> {
    RULES.iter().find(|rule| rule.method == method)
}

/// What calls need, by names in a policy file.
const NEEDS: [(&str, &str); 3] = [
    (
        "preemption:see",
        "rule:preemption:see_all or rule:preemption:project_member or rule:preemption:project_reader",
    ),
    (
        "preemption:see_all",
        "rule:preemption:admin or rule:preemption:global_reader",
    ),
    (
        "preemption:change",
        "rule:preemption:admin or rule:preemption:project_member",
    ),
];

/// What calls need, and the calls, by their names in a policy file; each with the check that such
/// a file replaces. The rules of the roles are Keystone's (`ebbtide_keystone::ROLE_RULES`).
pub fn policy_checks() -> impl Iterator<Item = (String, &'static str)> {
    let needs = NEEDS
        .iter()
        .map(|(name, check)| ((*name).to_owned(), *check));
    let calls = RULES.iter();
    needs.chain(calls.filter_map(|rule| Some((rule.policy_name(), rule.policy_check()?))))
}

impl AccessRule {
    /// The name of the rule in a policy file: `preemption:` and the call.
    #[must_use]
    pub fn policy_name(&self) -> String {
        let call = self.method.rsplit('/').next().unwrap_or(self.method);
        format!("preemption:{call}")
    }

    /// The check that a policy file replaces, in its language; `None` for what needs nothing.
    #[must_use]
    pub fn policy_check(&self) -> Option<&'static str> {
        match self.need {
            AccessRequirement::Nothing => None,
            AccessRequirement::AnyRole => Some("rule:preemption:see"),
            AccessRequirement::SeeAll => Some("rule:preemption:see_all"),
            AccessRequirement::Change => Some("rule:preemption:change"),
            AccessRequirement::Operate => Some("rule:preemption:admin"),
        }
    }

    /// Whether the role allows the call. Whose things it touches is looked at where the request has
    /// been read.
    ///
    /// # Errors
    /// [`AccessError::Forbidden`].
    pub fn permit(&self, caller: &Caller) -> Result<(), AccessError> {
        let why = match (self.need, caller.role) {
            (_, Role::Operator)
            | (AccessRequirement::Nothing | AccessRequirement::AnyRole, _)
            | (AccessRequirement::SeeAll, Role::Reader)
            | (AccessRequirement::Change, Role::Tenant) => return Ok(()),
            (AccessRequirement::SeeAll, Role::Tenant | Role::TenantReader) => {
                "it shows the whole region, for readers and operators"
            }
            (AccessRequirement::Change, Role::Reader | Role::TenantReader) => {
                "it changes something, and readers change nothing"
            }
            (AccessRequirement::Operate, _) => "it is for operators",
        };
        Err(AccessError::Forbidden {
            caller: caller.to_string(),
            method: self.method.trim_start_matches('/').to_owned(),
            why,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;
    use std::collections::BTreeSet;

    fn methods_of(descriptors: &[u8]) -> Vec<String> {
        let set = prost_types::FileDescriptorSet::decode(descriptors).unwrap();
        let mut methods = Vec::new();
        for file in &set.file {
            for service in &file.service {
                for method in &service.method {
                    methods.push(format!(
                        "/{}.{}/{}",
                        file.package(),
                        service.name(),
                        method.name()
                    ));
                }
            }
        }
        methods
    }

    #[test]
    fn the_table_has_every_call_of_the_contracts_once_and_no_other() {
        let mut contracts = methods_of(ebbtide_proto::v1::DESCRIPTORS);
        contracts.extend(methods_of(tonic_health::pb::FILE_DESCRIPTOR_SET));
        contracts.extend(methods_of(tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET));
        let table: Vec<String> = RULES.iter().map(|rule| rule.method.to_owned()).collect();
        let unique: BTreeSet<&String> = table.iter().collect();
        assert_eq!(unique.len(), table.len(), "a call stands there twice");
        let (contracts, table) = (BTreeSet::from_iter(contracts), BTreeSet::from_iter(table));
        assert_eq!(contracts, table);
    }

    #[test]
    fn readers_change_nothing_and_tenants_operate_nothing() {
        let caller = |role| Caller {
            role,
            ..Caller::unauthenticated()
        };
        for rule in RULES {
            assert!(rule.permit(&caller(Role::Operator)).is_ok());
            let verb = rule.method.rsplit('/').next().unwrap();
            let looks = [
                "Get",
                "List",
                "WhatIf",
                "Explain",
                "Watch",
                "RegionSummary",
                "Audit",
                "ShadowReport",
                "Record",
                "Check",
                "ServerReflectionInfo",
            ]
            .iter()
            .any(|beginning| verb.starts_with(beginning));
            assert_eq!(
                rule.permit(&caller(Role::Reader)).is_ok(),
                looks,
                "{}",
                rule.method
            );
            if matches!(
                rule.need,
                AccessRequirement::Operate | AccessRequirement::SeeAll
            ) {
                let error = rule.permit(&caller(Role::Tenant)).unwrap_err();
                assert_eq!(error.code(), "EB-ACCESS-004");
            }
            // Like a tenant in what it sees, like a reader in what it changes.
            let both = [Role::Tenant, Role::Reader].map(|role| rule.permit(&caller(role)).is_ok());
            let may = rule.permit(&caller(Role::TenantReader)).is_ok();
            assert_eq!(may, both == [true, true], "{}", rule.method);
        }
    }

    #[test]
    fn every_call_has_a_policy_name_of_its_own() {
        let names: BTreeSet<_> = policy_checks().map(|(name, _)| name).collect();
        assert_eq!(names.len(), policy_checks().count(), "{names:?}");
        assert!(names.contains("preemption:ListServers"), "{names:?}");
    }

    #[test]
    fn a_call_without_a_rule_has_none() {
        for method in [
            "",
            "/",
            "/ebbtide.v1.Servers/createservers",
            "/ebbtide.v1.Servers/CreateServers/",
        ] {
            assert_eq!(rule_of(method), None, "{method}");
        }
    }
}
