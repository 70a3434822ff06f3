//! From the names of a client certificate to a caller.
//!
//! Only names in the certificate's extension "subject alternative name" count, as RFC 6125
//! requires. There are two ways:
//!
//! - The certificate names the role itself: URI `ebbtide:role/operator`, `ebbtide:role/reader`, or
//!   `ebbtide:project/NAME` for a tenant (may be repeated). This is safe only where the authority
//!   signs for Ebbtide alone, because a client that can get a certificate signed chooses its role.
//!   It is therefore off unless `auth.roles_in_certificates` is set.
//! - The configuration names the certificate: `[[auth.certificates]]` with
//!   `name = "dns:ci.example.org"` or `"uri:spiffe://…"`.

use crate::caller::{Caller, Role};
use crate::error::AccessError;
use serde::{Deserialize, Serialize};

ebbtide_model::settings! {
    /// One line of `[[auth.certificates]]`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct CertificateRow {
        /// Whose certificate: dns:NAME or uri:NAME, whole and exactly.
        pub name: String => key("dns:ci.example.org");
        /// What its holder may do.
        pub role: Role => key("tenant");
        /// A tenant's projects; for the roles tenant and tenant-reader only.
        #[serde(default)]
        pub projects: Vec<String> = Vec::new() => key(r#"["ci"]"#);
    }
}

impl CertificateRow {
    /// Checks what types alone cannot.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        let name = &self.name;
        if !(name.starts_with("dns:") || name.starts_with("uri:")) || name.len() < 5 {
            return Err(format!("name = {name:?}: write dns:NAME or uri:NAME"));
        }
        check_projects(self.role, &self.projects).map_err(|problem| format!("{name}: {problem}"))
    }
}

/// Tenants have projects, others do not.
pub(crate) fn check_projects(role: Role, projects: &[String]) -> Result<(), String> {
    if role.is_tenant() && projects.is_empty() {
        return Err("a tenant needs at least one project".to_owned());
    }
    if !role.is_tenant() && !projects.is_empty() {
        return Err(format!("projects are for tenants, not for the role {role}"));
    }
    let empty = |project: &String| project.trim().is_empty() || project.len() > 255;
    if projects.iter().any(empty) {
        return Err("a project has a name of 1 to 255 bytes".to_owned());
    }
    Ok(())
}

/// The caller that presents a certificate with these names (`dns:…`, `uri:…`). The chain has been
/// verified before.
///
/// # Errors
/// [`AccessError::NoRole`].
pub fn caller(
    names: &[String],
    rows: &[CertificateRow],
    roles_in_certificates: bool,
) -> Result<Caller, AccessError> {
    if let Some(row) = rows.iter().find(|row| names.contains(&row.name)) {
        return Ok(Caller {
            name: format!("certificate {}", row.name),
            role: row.role,
            projects: row.projects.clone(),
            authenticated: true,
        });
    }
    if roles_in_certificates {
        for role in [Role::Operator, Role::Reader] {
            let wanted = format!("uri:ebbtide:role/{role}");
            if names.contains(&wanted) {
                return Ok(Caller {
                    name: format!("certificate {wanted}"),
                    role,
                    projects: Vec::new(),
                    authenticated: true,
                });
            }
        }
        let projects: Vec<String> = names
            .iter()
            .filter_map(|name| name.strip_prefix("uri:ebbtide:project/"))
            .filter(|project| !project.is_empty())
            .map(str::to_owned)
            .collect();
        if !projects.is_empty() {
            return Ok(Caller {
                name: format!("certificate uri:ebbtide:project/{}", projects.join(",")),
                role: Role::Tenant,
                projects,
                authenticated: true,
            });
        }
    }
    Err(AccessError::NoRole {
        names: if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn the_configuration_names_a_certificate_exactly() {
        let rows = [CertificateRow {
            name: "dns:ci.example.org".to_owned(),
            role: Role::Tenant,
            projects: names(&["science"]),
        }];
        let who = caller(&names(&["dns:ci.example.org"]), &rows, false).unwrap();
        assert_eq!(
            (who.role, who.projects),
            (Role::Tenant, names(&["science"]))
        );
        for other in [
            "dns:ci.example.org.evil.org",
            "uri:ci.example.org",
            "dns:CI",
        ] {
            let error = caller(&names(&[other]), &rows, false).unwrap_err();
            assert_eq!(error.code(), "EB-ACCESS-003");
        }
    }

    #[test]
    fn a_role_in_the_certificate_counts_only_where_that_is_configured() {
        let operator = names(&["uri:ebbtide:role/operator"]);
        assert!(caller(&operator, &[], false).is_err());
        assert_eq!(caller(&operator, &[], true).unwrap().role, Role::Operator);
        let tenant = names(&["uri:ebbtide:project/a", "dns:x", "uri:ebbtide:project/b"]);
        let who = caller(&tenant, &[], true).unwrap();
        assert_eq!((who.role, who.projects), (Role::Tenant, names(&["a", "b"])));
        for odd in [
            "uri:ebbtide:role/root",
            "uri:ebbtide:project/",
            "dns:ebbtide:role/operator",
        ] {
            assert!(caller(&names(&[odd]), &[], true).is_err(), "{odd}");
        }
    }

    #[test]
    fn rows_that_make_no_sense_are_refused() {
        let row = |name: &str, role, projects: &[&str]| CertificateRow {
            name: name.to_owned(),
            role,
            projects: names(projects),
        };
        assert!(row("dns:x", Role::Reader, &[]).check().is_ok());
        for bad in [
            row("x", Role::Reader, &[]),
            row("dns:", Role::Reader, &[]),
            row("dns:x", Role::Tenant, &[]),
            row("dns:x", Role::Reader, &["a"]),
            row("dns:x", Role::Tenant, &[" "]),
        ] {
            assert!(bad.check().is_err(), "{bad:?}");
        }
    }
}
