//! Interruption notices of metadata servers, in four forms. Requests and answers are plain data:
//! the caller sends and receives them.
//!
//! Sources: docs/operate/libvirt.md for Ebbtide's own form; "Spot Instance interruption notices"
//! and "EC2 instance rebalance recommendations" in the EC2 user guide; "Preemptible VM instances"
//! and "View and query VM metadata" in GCE's documentation; "Azure Metadata Service: Scheduled
//! Events for Linux VMs" in Azure's.

use crate::RunError;
use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};

/// The form of a cloud's notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Ebbtide's own, `/ebbtide/v1`.
    Ebbtide,
    /// Google's, `/computeMetadata/v1/instance/preempted`.
    Gce,
    /// Microsoft's, `/metadata/scheduledevents`.
    Azure,
    /// Amazon's, `/latest/meta-data/spot/instance-action`.
    Ec2,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetadataQuery {
    /// The method of HTTP.
    pub method: &'static str,
    /// Path and query.
    pub path: &'static str,
    pub headers: Vec<(&'static str, String)>,
    /// The body; empty for none.
    pub body: String,
}

/// An answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataResponse {
    /// The status of HTTP.
    pub status: u16,
    /// The header `Metadata-Flavor`, which identifies GCE's server.
    pub flavor: Option<String>,
    pub body: String,
}

/// Meaning of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataSignal {
    /// The instance may stay.
    Nothing,
    /// An interruption is more likely than for other instances.
    Risk,
    /// The instance has notice.
    Notice {
        /// The form's identifier of the notice; empty if the form has none.
        id: String,
        /// The earliest moment of its end, milliseconds since 1970; `None` where the form does not
        /// say.
        not_before: Option<i64>,
    },
}

const AZURE: &str = "/metadata/scheduledevents?api-version=2020-07-01";
const TOKEN: &str = "x-aws-ec2-metadata-token";

#[derive(Deserialize)]
struct NoticeAnswer {
    evacuation_id: String,
    action: String,
    not_before: String,
}

#[derive(Deserialize)]
struct InstanceAction {
    action: String,
    time: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ScheduledEvents {
    #[serde(rename = "DocumentIncarnation")]
    _incarnation: i64,
    events: Vec<ScheduledEvent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ScheduledEvent {
    event_id: String,
    event_type: String,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    not_before: String,
}

impl Form {
    /// All forms, in the order of detection: for a server that supports several, its native form
    /// comes first.
    pub const ALL: [Self; 4] = [Self::Ebbtide, Self::Gce, Self::Azure, Self::Ec2];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ebbtide => "ebbtide",
            Self::Gce => "gce",
            Self::Azure => "azure",
            Self::Ec2 => "ec2",
        }
    }

    /// The request that detects whether a server supports this form.
    #[must_use]
    pub fn probe(self) -> MetadataQuery {
        match self {
            Self::Ebbtide => get("/", Vec::new()),
            Self::Gce => get("/computeMetadata/v1/instance/preempted", google()),
            Self::Azure => self.notice_query(None),
            Self::Ec2 => token_query(),
        }
    }

    /// Whether the answer to [`Self::probe`] shows that the server supports this form.
    #[must_use]
    pub fn recognises(self, answer: &MetadataResponse) -> bool {
        answer.status == 200
            && match self {
                Self::Ebbtide => answer.body.lines().any(|line| line == "ebbtide/v1/"),
                Self::Gce => answer.flavor.as_deref() == Some("Google"),
                Self::Azure => serde_json::from_str::<ScheduledEvents>(&answer.body).is_ok(),
                Self::Ec2 => !answer.body.trim().is_empty() && answer.body.len() < 512,
            }
    }

    /// The request for a session token, which must precede each poll; the body of the answer is the
    /// token.
    #[must_use]
    pub fn token(self) -> Option<MetadataQuery> {
        (self == Self::Ec2).then(token_query)
    }

    /// The request for a notice.
    #[must_use]
    pub fn notice_query(self, token: Option<&str>) -> MetadataQuery {
        match self {
            Self::Ebbtide => get("/ebbtide/v1/notice", Vec::new()),
            Self::Gce => get("/computeMetadata/v1/instance/preempted", google()),
            Self::Azure => get(AZURE, vec![("metadata", "true".to_owned())]),
            Self::Ec2 => get("/latest/meta-data/spot/instance-action", with(token)),
        }
    }

    /// The request for a risk, if the form has one.
    #[must_use]
    pub fn risk_query(self, token: Option<&str>) -> Option<MetadataQuery> {
        let path = "/latest/meta-data/events/recommendations/rebalance";
        (self == Self::Ec2).then(|| get(path, with(token)))
    }

    /// The meaning of the answer to [`Self::notice_query`]. `name` is the instance's own name; some
    /// lists also contain events of other instances.
    ///
    /// # Errors
    /// [`RunError::Answer`] if the answer does not have the expected form. An unreadable answer
    /// does not count as no notice.
    pub fn parse_answer(
        self,
        answer: &MetadataResponse,
        name: Option<&str>,
    ) -> Result<MetadataSignal, RunError> {
        let path = self.notice_query(None).path;
        let wrong = |problem: String| RunError::Answer {
            path: path.to_owned(),
            problem,
        };
        match (self, answer.status) {
            (_, 200) => {}
            // In both forms a missing resource means no notice.
            (Self::Ebbtide | Self::Ec2, 404) => return Ok(MetadataSignal::Nothing),
            (_, status) => return Err(wrong(format!("status {status}"))),
        }
        let body = answer.body.trim();
        // The error message repeats the unexpected value, which may be long.
        let json = |error: serde_json::Error| wrong(error.to_string().chars().take(120).collect());
        match self {
            Self::Ebbtide => {
                let told: NoticeAnswer = serde_json::from_str(body).map_err(json)?;
                // A live migration does not interrupt the instance.
                if told.action == "live-migrate" {
                    return Ok(MetadataSignal::Nothing);
                }
                Ok(MetadataSignal::Notice {
                    not_before: Some(millis(&told.not_before).map_err(wrong)?),
                    id: told.evacuation_id,
                })
            }
            Self::Ec2 => {
                let told: InstanceAction = serde_json::from_str(body).map_err(json)?;
                Ok(MetadataSignal::Notice {
                    id: told.action,
                    not_before: Some(millis(&told.time).map_err(wrong)?),
                })
            }
            Self::Gce => match body {
                "TRUE" => Ok(MetadataSignal::Notice {
                    id: String::new(),
                    not_before: None,
                }),
                "FALSE" => Ok(MetadataSignal::Nothing),
                other => Err(wrong(format!(
                    "{:?} is neither TRUE nor FALSE",
                    short(other)
                ))),
            },
            Self::Azure => {
                let told: ScheduledEvents = serde_json::from_str(body).map_err(json)?;
                let ours = |event: &&ScheduledEvent| {
                    matches!(event.event_type.as_str(), "Preempt" | "Terminate")
                        && name.is_none_or(|name| event.resources.iter().any(|r| r == name))
                };
                let Some(event) = told.events.iter().find(ours) else {
                    return Ok(MetadataSignal::Nothing);
                };
                // An event that has begun has no time.
                let not_before = match event.not_before.as_str() {
                    "" => None,
                    text => Some(millis(text).map_err(wrong)?),
                };
                Ok(MetadataSignal::Notice {
                    id: event.event_id.clone(),
                    not_before,
                })
            }
        }
    }

    /// Whether the answer to [`Self::risk_query`] reports a risk.
    #[must_use]
    pub fn reports_risk(self, answer: &MetadataResponse) -> bool {
        self == Self::Ec2 && answer.status == 200 && answer.body.contains("noticeTime")
    }

    /// Whether the form can report that the instance needs no more time.
    #[must_use]
    pub fn releases(self) -> bool {
        matches!(self, Self::Ebbtide | Self::Azure)
    }

    /// The request that reports that the instance needs no more time under this notice.
    #[must_use]
    pub fn release(self, id: &str) -> Option<MetadataQuery> {
        let (path, headers, body) = match self {
            Self::Ebbtide => (
                "/ebbtide/v1/release",
                Vec::new(),
                serde_json::json!({ "evacuation_id": id }),
            ),
            Self::Azure => (
                AZURE,
                vec![("metadata", "true".to_owned())],
                serde_json::json!({ "StartRequests": [{ "EventId": id }] }),
            ),
            Self::Gce | Self::Ec2 => return None,
        };
        Some(MetadataQuery {
            method: "POST",
            path,
            headers,
            body: body.to_string(),
        })
    }
}

fn get(path: &'static str, headers: Vec<(&'static str, String)>) -> MetadataQuery {
    MetadataQuery {
        method: "GET",
        path,
        headers,
        body: String::new(),
    }
}

fn google() -> Vec<(&'static str, String)> {
    vec![("metadata-flavor", "Google".to_owned())]
}

fn with(token: Option<&str>) -> Vec<(&'static str, String)> {
    token
        .map(|token| (TOKEN, token.to_owned()))
        .into_iter()
        .collect()
}

fn token_query() -> MetadataQuery {
    MetadataQuery {
        method: "PUT",
        path: "/latest/api/token",
        headers: vec![("x-aws-ec2-metadata-token-ttl-seconds", "60".to_owned())],
        body: String::new(),
    }
}

/// Parses both time formats of the clouds.
fn millis(text: &str) -> Result<i64, String> {
    let moment = OffsetDateTime::parse(text, &Rfc3339)
        .or_else(|_| OffsetDateTime::parse(text, &Rfc2822))
        .map_err(|_| format!("{:?} is no time", short(text)))?;
    i64::try_from(moment.unix_timestamp_nanos() / 1_000_000)
        .map_err(|_| format!("{:?} is no time", short(text)))
}

/// The beginning of an arbitrary text.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}
