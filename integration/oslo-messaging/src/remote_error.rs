//! Failures as Python's oslo.messaging sends and reads them (oslo_messaging/_drivers/common.py).

use std::fmt;

use serde_json::{Value, json};

use crate::Map;

/// The module of Python's own exceptions; Python 2 called it `exceptions`.
const BUILTINS: &str = "builtins";

/// An exception that crosses the wire.
///
/// A Python caller raises `module.class(*args, **kwargs)` if the module is in its
/// `allowed_remote_exmods` (or is `builtins`), and `oslo_messaging.RemoteError` otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteError {
    /// The exception's class, for example `NoValidHost`.
    pub class: String,
    /// The Python module of the class, for example `nova.exception`.
    pub module: String,
    /// What `str(exception)` says.
    pub message: String,
    /// The positional arguments that rebuild the exception. Often just the message.
    pub args: Box<[Value]>,
    /// The keyword arguments that rebuild the exception.
    pub kwargs: Box<Map>,
    /// The traceback in lines, as Python's `traceback.format_exception` makes it. If it is empty,
    /// one without frames is sent.
    pub traceback: Box<[String]>,
    /// An exception that the operation is known to raise (Python's `expected_exceptions`): it is
    /// logged quietly.
    pub expected: bool,
}

impl RemoteError {
    /// An exception that is made from its message alone.
    #[must_use]
    pub fn new(
        module: impl Into<String>,
        class: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let message = message.into();
        Self {
            class: class.into(),
            module: module.into(),
            args: Box::new([Value::String(message.clone())]),
            message,
            kwargs: Box::default(),
            traceback: Box::default(),
            expected: false,
        }
    }

    /// One of Python's own exceptions, which every caller can rebuild: `TypeError`, `ValueError`,
    /// ….
    #[must_use]
    pub fn builtin(class: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(BUILTINS, class, message)
    }

    /// The same with a keyword argument.
    #[must_use]
    pub fn with_kwarg(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.kwargs.insert(name.into(), value.into());
        self
    }

    /// The same as an expected one.
    #[must_use]
    pub fn expected(mut self) -> Self {
        self.expected = true;
        self
    }

    /// No endpoint has this method (Python's `NoSuchMethod`).
    #[must_use]
    pub fn no_such_method(method: &str) -> Self {
        Self::new(
            "oslo_messaging.rpc.dispatcher",
            "NoSuchMethod",
            format!("Endpoint does not support RPC method {method}"),
        )
    }

    /// No endpoint understands this version (Python's `UnsupportedVersion`).
    #[must_use]
    pub fn unsupported_version(version: &str, method: &str) -> Self {
        Self::new(
            "oslo_messaging.rpc.dispatcher",
            "UnsupportedVersion",
            format!("Endpoint does not support RPC version {version}. Attempted method: {method}"),
        )
    }

    /// Whether this is the class of this module. Python 2's `exceptions` is `builtins`.
    #[must_use]
    pub fn is(&self, module: &str, class: &str) -> bool {
        let own = match self.module.as_str() {
            "exceptions" => BUILTINS,
            other => other,
        };
        own == module && self.class == class
    }

    /// The lines that a Python caller prints below the message.
    pub(crate) fn traceback_lines(&self) -> Vec<String> {
        if !self.traceback.is_empty() {
            return self.traceback.to_vec();
        }
        let name = if self.module == BUILTINS {
            self.class.clone()
        } else {
            format!("{}.{}", self.module, self.class)
        };
        vec![
            "Traceback (most recent call last):\n".to_owned(),
            format!("{name}: {}\n", self.message),
        ]
    }

    /// Reads what is inside the string `failure` of a reply. Tolerant, as Python is: what is
    /// missing is empty.
    pub(crate) fn from_json(failure: &Value) -> Option<Self> {
        let object = failure.as_object()?;
        let text = |name: &str| match object.get(name) {
            Some(Value::String(text)) => text.clone(),
            _ => String::new(),
        };
        Some(Self {
            class: text("class"),
            module: text("module"),
            message: text("message"),
            args: object
                .get("args")
                .and_then(Value::as_array)
                .map(|args| args.clone().into())
                .unwrap_or_default(),
            kwargs: object
                .get("kwargs")
                .and_then(Value::as_object)
                .map(|kwargs| Box::new(kwargs.clone()))
                .unwrap_or_default(),
            traceback: object
                .get("tb")
                .and_then(Value::as_array)
                .map(|lines| {
                    lines
                        .iter()
                        .map(|line| {
                            line.as_str()
                                .map_or_else(|| line.to_string(), str::to_owned)
                        })
                        .collect()
                })
                .unwrap_or_default(),
            expected: false,
        })
    }

    /// For tests and logs: the failure as a JSON object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "class": self.class,
            "module": self.module,
            "message": self.message,
            "tb": self.traceback_lines(),
            "args": self.args,
            "kwargs": self.kwargs,
        })
    }
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}: {}", self.module, self.class, self.message)
    }
}

impl std::error::Error for RemoteError {}
