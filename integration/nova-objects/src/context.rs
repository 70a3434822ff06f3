//! Who asks (`nova/context.py`): the `_context_*` keys of a message.

use crate::error::Result;
use crate::read::{self, member};
use ebbtide_nova::python::{Dict, Value};
use std::fmt;

/// The context of a request. The token never shows in debug output.
#[derive(Clone, PartialEq, Default)]
pub struct RpcContext {
    /// `req-…`; goes into `X-Openstack-Request-Id` of what is asked of Placement.
    pub request_id: Option<String>,
    /// The request id that the client of Nova gave.
    pub global_request_id: Option<String>,
    pub user_id: Option<String>,
    pub project_id: Option<String>,
    pub user_name: Option<String>,
    pub project_name: Option<String>,
    pub user_domain: Option<String>,
    pub project_domain: Option<String>,
    pub roles: Vec<String>,
    /// Whether policy takes it for an administrator.
    pub is_admin: bool,
    /// When the API took the request: microseconds since 1970, UTC.
    pub timestamp: Option<i64>,
    /// Token of the user. Nothing here needs it.
    pub auth_token: Option<String>,
    /// Every key as it came, without `_context_`.
    fields: Dict<Value>,
}

impl RpcContext {
    /// Reads the context from a message (keys begin with `_context_`) or from a dictionary of its
    /// own.
    ///
    /// # Errors
    /// No dictionary, or a value that is not of its type.
    pub fn read(message: &Value) -> Result<Self> {
        let message = read::dict(message)?;
        let prefixed = message.keys().any(|key| key.starts_with("_context_"));
        let fields: Dict<Value> = message
            .iter()
            .filter_map(|(key, value)| {
                let name = if prefixed {
                    key.strip_prefix("_context_")?
                } else {
                    key
                };
                Some((name, value.clone()))
            })
            .collect();
        let text = |name: &str| member(&fields, name, read::text);
        Ok(Self {
            request_id: text("request_id")?,
            global_request_id: text("global_request_id")?,
            user_id: text("user_id")?.or(text("user")?),
            project_id: text("project_id")?.or(text("tenant")?),
            user_name: text("user_name")?,
            project_name: text("project_name")?,
            user_domain: text("user_domain")?,
            project_domain: text("project_domain")?,
            roles: member(&fields, "roles", read::texts)?.unwrap_or_default(),
            is_admin: fields.get("is_admin").is_some_and(Value::truth),
            timestamp: member(&fields, "timestamp", read::time)?,
            auth_token: text("auth_token")?,
            fields,
        })
    }

    /// A key as it came.
    pub(crate) fn field(&self, name: &str) -> Option<&Value> {
        self.fields.get(name)
    }
}

impl fmt::Debug for RpcContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcContext")
            .field("request_id", &self.request_id)
            .field("global_request_id", &self.global_request_id)
            .field("user_id", &self.user_id)
            .field("project_id", &self.project_id)
            .field("timestamp", &self.timestamp)
            .finish_non_exhaustive()
    }
}
