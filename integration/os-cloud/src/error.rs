//! Why no cloud could be chosen, or the chosen one not be used.

use ebbtide_openstack::OpenStackError;
use std::path::PathBuf;
use thiserror::Error;

/// Why no cloud could be chosen, or the chosen one not be used. No text of it has a secret.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OsCloudError {
    /// No file has a cloud of this name.
    #[error("no cloud named {name:?} in {}", files(.found, .looked))]
    NoSuchCloud {
        /// The name as it was given.
        name: String,
        /// The names that there are.
        known: Vec<String>,
        /// The files that were read.
        found: Vec<PathBuf>,
        /// Where a clouds.yaml was looked for.
        looked: Vec<PathBuf>,
    },
    /// A file that cannot be understood.
    #[error("{}: {problem}", path.display())]
    File {
        path: PathBuf,
        /// What is wrong, with the line.
        problem: String,
    },
    /// The cloud has regions, and this is none of them.
    #[error("cloud {cloud} has no region {region:?}")]
    NoSuchRegion {
        cloud: String,
        /// The region as it was given.
        region: String,
        /// The regions that there are.
        known: Vec<String>,
    },
    /// A profile that no file has.
    #[error("cloud {cloud}: no clouds-public.yaml has the profile {profile:?}")]
    NoSuchProfile { cloud: String, profile: String },
    /// Settings that do not suffice, or what Keystone and the catalog said.
    #[error("cloud {cloud}: {error}")]
    OpenStack {
        cloud: String,
        /// What is wrong.
        error: Box<OpenStackError>,
    },
    /// The address in the catalog is none that the command can use.
    #[error("cloud {cloud}: the endpoint {url} of the service preemption {problem}")]
    Endpoint {
        cloud: String,
        /// The address.
        url: String,
        /// What is wrong with it.
        problem: String,
    },
}

fn files(found: &[PathBuf], looked: &[PathBuf]) -> String {
    let list = |paths: &[PathBuf]| {
        let paths: Vec<String> = paths.iter().map(|p| p.display().to_string()).collect();
        paths.join(", ")
    };
    match found {
        [] => format!("a clouds.yaml, as there is none of {}", list(looked)),
        found => list(found),
    }
}

impl OsCloudError {
    /// What became of this cloud.
    #[must_use]
    pub fn of_cloud(cloud: &str, error: OpenStackError) -> Self {
        Self::OpenStack {
            cloud: cloud.to_owned(),
            error: Box::new(error),
        }
    }

    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoSuchCloud { .. } => "EB-OSCLOUD-001",
            Self::File { .. } => "EB-OSCLOUD-002",
            Self::NoSuchRegion { .. } => "EB-OSCLOUD-003",
            Self::NoSuchProfile { .. } => "EB-OSCLOUD-004",
            Self::Endpoint { .. } => "EB-OSCLOUD-005",
            Self::OpenStack { error, .. } => error.code(),
        }
    }

    /// What the user can do about it, if anything is known.
    #[must_use]
    pub fn next_step(&self) -> Option<String> {
        match self {
            Self::NoSuchCloud { known, .. } if known.is_empty() => Some(
                "write clouds.yaml (`openstack` reads the same), or name it in OS_CLIENT_CONFIG_FILE"
                    .to_owned(),
            ),
            Self::NoSuchCloud { known, .. } => Some(format!("the clouds are {}", known.join(", "))),
            Self::File { .. } => Some("correct the file; text with special characters needs quotes".to_owned()),
            Self::NoSuchRegion { known, .. } => {
                Some(format!("its regions are {}", known.join(", ")))
            }
            Self::NoSuchProfile { .. } => Some(
                "write auth_url and region_name into clouds.yaml in place of the profile".to_owned(),
            ),
            Self::Endpoint { cloud, .. } => Some(format!(
                "correct it in the catalog (`openstack --os-cloud {cloud} endpoint list --service preemption`), or set preemption_endpoint_override"
            )),
            Self::OpenStack { cloud, error } => match error.as_ref() {
                OpenStackError::Unauthorized { .. } => Some(format!(
                    "`openstack --os-cloud {cloud} token issue` tries the same credentials"
                )),
                OpenStackError::NoEndpoint { .. } => Some(
                    "an administrator registers it: `openstack service create --name ebbtide preemption`, `openstack endpoint create --region REGION preemption public https://SCHEDULER:7472`; or set preemption_endpoint_override in clouds.yaml"
                        .to_owned(),
                ),
                _ => None,
            },
        }
    }

    /// True if the cloud cannot be reached.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        let Self::OpenStack { error, .. } = self else {
            return false;
        };
        matches!(**error, OpenStackError::Unavailable { .. })
    }

    /// True if files, variables or options are wrong.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::OpenStack { error, .. } => matches!(**error, OpenStackError::Config { .. }),
            Self::Endpoint { .. } => false,
            _ => true,
        }
    }
}
