//! News from the metadata of the virtual machine in which this program runs.

use super::fault::RunFault;
use super::place::{InstanceNews, Rounds};
use crate::http::{self, Address, HttpCall};
use ebbtide_run::Span;
use ebbtide_run::metadata::{Form, MetadataQuery, MetadataResponse, MetadataSignal};
use ebbtide_runtime::clock;
use std::time::Duration;

/// Assumed time from a notice to the end where the form does not say: GCE's documentation says 30
/// s, and polling costs up to a second.
const UNSAID_GRACE_MILLIS: i64 = 29_000;

/// The metadata of this virtual machine.
#[derive(Debug)]
pub(super) struct OwnMetadata {
    address: Address,
    form: Form,
    /// This machine's name, needed if the list also contains events of other machines.
    name: Option<String>,
    rounds: Rounds,
    here: bool,
    age: Span,
    /// The notice's identifier, and its deadline.
    notice: Option<(String, i64)>,
    risk: bool,
}

impl OwnMetadata {
    /// Detects the form of the metadata, or uses the given one.
    ///
    /// # Errors
    /// [`RunFault::NoMetadata`].
    pub(super) async fn find(
        address: Address,
        form: Option<Form>,
        age: Option<Span>,
        poll: Duration,
    ) -> Result<Self, RunFault> {
        let mut heard = Vec::new();
        let mut found = None;
        let candidates = form.map_or_else(|| Form::ALL.to_vec(), |form| vec![form]);
        for form in candidates {
            match query_metadata(&address, &form.probe()).await {
                Ok(answer) if form.recognises(&answer) => {
                    found = Some(form);
                    break;
                }
                Ok(answer) => heard.push(format!("{}: status {}", form.as_str(), answer.status)),
                Err(problem) => {
                    heard.push(format!("{}: {problem}", form.as_str()));
                }
            }
        }
        let Some(form) = found else {
            return Err(RunFault::NoMetadata {
                url: address.to_string(),
                problem: heard.join(", "),
            });
        };
        let mut guest = Self {
            address,
            form,
            name: None,
            rounds: Rounds::new(poll),
            here: false,
            age: age.unwrap_or_else(uptime),
            notice: None,
            risk: false,
        };
        if form == Form::Azure {
            guest.name = guest.own_name().await;
        }
        Ok(guest)
    }

    async fn own_name(&self) -> Option<String> {
        let ask = MetadataQuery {
            method: "GET",
            path: "/metadata/instance/compute/name?api-version=2021-02-01&format=text",
            headers: vec![("metadata", "true".to_owned())],
            body: String::new(),
        };
        let answer = query_metadata(&self.address, &ask).await.ok()?;
        let name = answer.body.trim();
        (answer.status == 200 && !name.is_empty()).then(|| name.to_owned())
    }

    /// Whether the form can report that the instance needs no more time.
    pub(super) fn releases(&self) -> bool {
        self.form.releases()
    }

    /// Waits for the next news.
    pub(super) async fn next(&mut self) -> InstanceNews {
        if !self.here {
            self.here = true;
            return InstanceNews::Here {
                age: self.age,
                env: Vec::new(),
                words: format!("this machine, whose metadata speak {}", self.form.as_str()),
            };
        }
        loop {
            self.rounds.due().await;
            let looked = self.look().await;
            let looked = looked.map_err(|problem| format!("{}: {problem}", self.address));
            if let Some(news) = self.rounds.seen(looked) {
                return news;
            }
        }
    }

    async fn look(&mut self) -> Result<Option<InstanceNews>, String> {
        let token = match self.form.token() {
            Some(ask) => {
                let answer = query_metadata(&self.address, &ask).await?;
                // Version 1 has no tokens.
                (answer.status == 200).then(|| answer.body.trim().to_owned())
            }
            None => None,
        };
        let token = token.as_deref();
        let answer = query_metadata(&self.address, &self.form.notice_query(token)).await?;
        let heard = self.form.parse_answer(&answer, self.name.as_deref());
        match heard.map_err(|error| error.to_string())? {
            MetadataSignal::Notice { id, not_before } => Ok(self.told(id, not_before)),
            MetadataSignal::Nothing if self.notice.take().is_some() => {
                Ok(Some(InstanceNews::Spared))
            }
            MetadataSignal::Nothing | MetadataSignal::Risk => {
                let Some(ask) = self.form.risk_query(token) else {
                    return Ok(None);
                };
                let answer = query_metadata(&self.address, &ask).await?;
                let before = std::mem::replace(&mut self.risk, self.form.reports_risk(&answer));
                Ok((self.risk && !before).then_some(InstanceNews::Risk))
            }
        }
    }

    fn told(&mut self, id: String, not_before: Option<i64>) -> Option<InstanceNews> {
        let known = self.notice.as_ref();
        let same =
            known.is_some_and(|(known, at)| *known == id && not_before.is_none_or(|t| t == *at));
        if same {
            return None;
        }
        let now = clock::unix_millis();
        // An event that has begun has no time any more; its earlier time remains valid.
        let known = known.filter(|(known, _)| *known == id).map(|(_, at)| *at);
        let deadline = not_before.or(known).unwrap_or(now + UNSAID_GRACE_MILLIS);
        self.notice = Some((id, deadline));
        Some(InstanceNews::Notice {
            deadline,
            words: format!("this machine has to leave ({})", self.form.as_str()),
        })
    }

    /// Reports that the instance needs no more time.
    ///
    /// # Errors
    /// A text for people.
    pub(super) async fn release(&mut self) -> Result<(), String> {
        let id = self.notice.as_ref().map(|(id, _)| id.as_str());
        let Some(ask) = id.and_then(|id| self.form.release(id)) else {
            return Ok(());
        };
        let answer = query_metadata(&self.address, &ask).await?;
        match answer.status {
            200..=299 => Ok(()),
            status => Err(format!("status {status}")),
        }
    }
}

/// Timeout of an answer. Metadata servers answer from memory.
const LIMIT: Duration = Duration::from_secs(3);

/// Maximum size of an answer. Real answers have some kilobytes.
const LARGEST: usize = 256 * 1024;

async fn query_metadata(
    address: &Address,
    query: &MetadataQuery,
) -> Result<MetadataResponse, String> {
    let call = HttpCall {
        method: query.method,
        path: query.path,
        headers: &query.headers,
        body: &query.body,
        limit: LIMIT,
        largest: LARGEST,
    };
    let answer = http::ask(address, &call).await?;
    Ok(MetadataResponse {
        status: answer.status,
        flavor: answer.flavor,
        body: answer.body,
    })
}

/// The time since the machine booted: its age, unless it has rebooted.
pub(super) fn uptime() -> Span {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    let seconds = text
        .split(' ')
        .next()
        .and_then(|text| text.parse::<f64>().ok());
    Span::from_hours(seconds.unwrap_or(0.0) / 3600.0)
}
