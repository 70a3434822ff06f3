//! Failures as oslo.messaging carries them: class, module, message, args, kwargs
//! (`nova/exception.py`).

use ebbtide_nova::fault::NovaException;
use serde_json::{Map, Value as Json, json};

/// An exception for the caller. The conductor raises it again under its own class only if the
/// module is one that it allows, and `nova.exception` is.
#[derive(Debug, Clone, PartialEq)]
pub struct ExceptionPayload {
    /// Class name.
    pub class: String,
    /// Module of the class.
    pub module: String,
    /// `str()` of it; also its only positional argument.
    pub message: String,
    /// Keyword arguments.
    pub kwargs: Map<String, Json>,
}

/// Which module a class of Nova's faults lives in; what is not here is Python's own.
const MODULES: [(&str, &[&str]); 4] = [
    (
        "nova.exception",
        &[
            "NoValidHost",
            "AllocationUpdateFailed",
            "AllocationDeleteFailed",
            "ComputeHostMetricNotFound",
            "Invalid",
            "ObjectActionError",
            "OrphanedObjectError",
            "RequestFilterFailed",
            "SchedulerHostFilterNotFound",
            "HostMappingNotFound",
            "ComputeHostNotFound",
            "InternalError",
            "PciDeviceNotFound",
        ],
    ),
    (
        "oslo_versionedobjects.exception",
        &["UnsupportedObjectError", "IncompatibleObjectVersion"],
    ),
    (
        "oslo_messaging.rpc.dispatcher",
        &["UnsupportedVersion", "NoSuchMethod"],
    ),
    ("json.decoder", &["JSONDecodeError"]),
];

impl ExceptionPayload {
    /// `NoValidHost`: no host was found, and why, in words that name no other tenant.
    #[must_use]
    pub fn no_valid_host(reason: &str) -> Self {
        Self::nova(
            "NoValidHost",
            format!("No valid host was found. {reason}"),
            [("reason", reason.into())],
        )
    }

    /// `AllocationUpdateFailed`: the consumer changed between our reading and our claim.
    #[must_use]
    pub fn allocation_update_failed(consumer_uuid: &str, error: &str) -> Self {
        Self::nova(
            "AllocationUpdateFailed",
            format!("Failed to update allocations for consumer {consumer_uuid}. Error: {error}"),
            [
                ("consumer_uuid", consumer_uuid.into()),
                ("error", error.into()),
            ],
        )
    }

    /// An exception of `nova.exception`: its keyword arguments always end with the HTTP code, 500
    /// for these.
    fn nova<const N: usize>(class: &str, message: String, kwargs: [(&str, Json); N]) -> Self {
        let kwargs = kwargs.into_iter().chain([("code", 500.into())]);
        Self {
            class: class.to_owned(),
            module: "nova.exception".to_owned(),
            message,
            kwargs: kwargs
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        }
    }

    /// What Nova raises for a fault of its filters, weighers, objects.
    #[must_use]
    pub fn of(fault: &NovaException) -> Self {
        if fault.class == "NoValidHost" {
            return Self::no_valid_host(&fault.message);
        }
        let module = MODULES
            .iter()
            .find(|(_, classes)| classes.contains(&fault.class))
            .map_or("builtins", |(module, _)| *module);
        if module == "nova.exception" {
            return Self::nova(fault.class, fault.message.clone(), []);
        }
        Self {
            class: fault.class.to_owned(),
            module: module.to_owned(),
            message: fault.message.clone(),
            kwargs: Map::new(),
        }
    }

    /// The object that stands, as text of JSON, under `failure` of a reply. There is no Python
    /// traceback to tell; the list has the last line of one, which is what clients print.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let name = if self.module == "builtins" {
            self.class.clone()
        } else {
            format!("{}.{}", self.module, self.class)
        };
        json!({
            "class": self.class,
            "module": self.module,
            "message": self.message,
            "tb": [format!("{name}: {}\n", self.message)],
            "args": [self.message],
            "kwargs": self.kwargs,
        })
    }
}
