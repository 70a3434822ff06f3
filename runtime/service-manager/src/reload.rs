//! SIGHUP: the logins of the configuration are read again. For each of them there is one line in
//! the log and one time series, `ebbtide_last_reload_successful{key}`.

use ebbtide_runtime::login::Renewal;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::pin::Pin;
use std::sync::LazyLock;

/// The label of a reload that could not read the configuration at all.
const WHOLE: &str = "configuration";

/// The label of a time series.
#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct KeyLabel {
    key: &'static str,
}

/// Whether the last reload took each key into use: 1 or 0.
pub type ReloadStates = Family<KeyLabel, Gauge>;

static STATES: LazyLock<ReloadStates> = LazyLock::new(ReloadStates::default);

/// Whether the last reload of this process succeeded, for its page of metrics.
#[must_use]
pub fn states() -> ReloadStates {
    STATES.clone()
}

/// Why a new login, or a whole configuration, is not taken into use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The stable code of the error.
    pub code: &'static str,
    /// The error in words, without passwords.
    pub problem: String,
}

impl Refusal {
    /// An error with its code.
    #[must_use]
    pub fn new(code: &'static str, error: &impl Display) -> Self {
        Self {
            code,
            problem: error.to_string(),
        }
    }
}

type Renewing = Pin<Box<dyn Future<Output = Result<Renewal, Refusal>> + Send>>;

struct LoginEntry<C> {
    key: &'static str,
    renew: Box<dyn Fn(&C) -> Renewing + Send + Sync>,
}

/// The logins of a running program, which its configuration `C` holds.
pub struct Logins<C> {
    entries: Vec<LoginEntry<C>>,
}

impl<C> Default for Logins<C> {
    fn default() -> Self {
        let entries = Vec::new();
        Self { entries }
    }
}

impl<C> Logins<C> {
    /// A login under its key of the configuration. `renew` gets the configuration that was read
    /// again. Several clients may have a login of one key.
    pub fn add<R>(&mut self, key: &'static str, renew: impl Fn(&C) -> R + Send + Sync + 'static)
    where
        R: Future<Output = Result<Renewal, Refusal>> + Send + 'static,
    {
        let renew = move |config: &C| Box::pin(renew(config)) as Renewing;
        let _ = STATES.get_or_create(&KeyLabel { key }).set(1);
        let _ = STATES.get_or_create(&KeyLabel { key: WHOLE }).set(1);
        self.entries.push(LoginEntry {
            key,
            renew: Box::new(renew),
        });
    }

    /// Renews every login from a configuration that was read again. One that is refused stays as it
    /// was, and so does everything if the configuration could not be read. `later` are the names of
    /// changed keys that only a restart applies.
    pub async fn renew(&self, read: Result<(&C, &[String]), Refusal>) {
        let (config, later) = match read {
            Ok(read) => read,
            Err(Refusal { code, problem }) => {
                tracing::error!(code, "SIGHUP: the configuration stays as it is: {problem}");
                set(WHOLE, false);
                return;
            }
        };
        set(WHOLE, true);
        if !later.is_empty() {
            tracing::warn!(
                "SIGHUP: these changes apply at the next start: {}",
                later.join(", ")
            );
        }
        let mut good: BTreeMap<&'static str, bool> = BTreeMap::new();
        for LoginEntry { key, renew } in &self.entries {
            let renewed = renew(config).await;
            let all = good.entry(key).or_insert(true);
            *all &= renewed.is_ok();
            tell(key, renewed);
        }
        for (key, is_good) in good {
            set(key, is_good);
        }
    }
}

fn set(key: &'static str, is_good: bool) {
    STATES
        .get_or_create(&KeyLabel { key })
        .set(i64::from(is_good));
}

fn tell(key: &'static str, renewed: Result<Renewal, Refusal>) {
    match renewed {
        Ok(Renewal::Unchanged) => tracing::info!(key, "SIGHUP: the login is the same"),
        Ok(Renewal::Accepted) => tracing::info!(
            key,
            "SIGHUP: the new login is accepted, and new connections use it"
        ),
        Ok(Renewal::Untested(problem)) => tracing::warn!(
            key,
            "SIGHUP: new connections use the new login, which could not be tested: {problem}"
        ),
        Ok(Renewal::NextStart(what)) => tracing::warn!(
            key,
            "SIGHUP: more than the login has changed ({what}), which applies at the next start; \
             the old login stays"
        ),
        Err(Refusal { code, problem }) => tracing::error!(
            key,
            code,
            "SIGHUP: the new login is refused, and the old one stays: {problem}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    fn state(key: &'static str) -> i64 {
        STATES.get_or_create(&KeyLabel { key }).get()
    }

    #[tokio::test]
    async fn each_key_has_a_state_and_an_unreadable_configuration_changes_nothing() {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut logins = Logins::<String>::default();
        for client in ["one", "two"] {
            let seen = Arc::clone(&seen);
            logins.add("test.url", move |config: &String| {
                let (config, seen) = (config.clone(), Arc::clone(&seen));
                async move {
                    seen.lock().unwrap().push(format!("{client} {config}"));
                    match (client, config.as_str()) {
                        ("one", "wrong") => Err(Refusal::new("EB-TEST-001", &"refused")),
                        _ => Ok(Renewal::Accepted),
                    }
                }
            });
        }
        assert_eq!(state("test.url"), 1);
        logins.renew(Ok((&"wrong".to_owned(), &[]))).await;
        assert_eq!((state("test.url"), state(WHOLE)), (0, 1));
        logins
            .renew(Err(Refusal::new("EB-TEST-002", &"no file")))
            .await;
        assert_eq!((state("test.url"), state(WHOLE)), (0, 0));
        logins.renew(Ok((&"right".to_owned(), &[]))).await;
        assert_eq!((state("test.url"), state(WHOLE)), (1, 1));
        let expected = ["one wrong", "two wrong", "one right", "two right"];
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}
