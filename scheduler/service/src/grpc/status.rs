//! Errors as gRPC statuses: a canonical code, and Ebbtide's stable code as
//! `google.rpc.ErrorInfo.reason`.

use crate::error::ServiceError;
use ebbtide_access::AccessError;
use ebbtide_engine::EngineError;
use ebbtide_keystone::Meaning;
use ebbtide_region::RegionError;
use std::collections::HashMap;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The domain of Ebbtide's error codes.
const DOMAIN: &str = "ebbtide.org";

impl From<ServiceError> for Status {
    fn from(error: ServiceError) -> Self {
        let mut details = ErrorDetails::with_error_info(error.code(), DOMAIN, HashMap::new());
        if let ServiceError::Access(AccessError::TooOften { wait, .. }) = &error {
            details.set_retry_info(Some(*wait));
        }
        Self::with_error_details(canonical(&error), error.to_string(), details)
    }
}

fn canonical(error: &ServiceError) -> Code {
    match error {
        ServiceError::Region(error) => match error {
            RegionError::Invalid(_) | RegionError::Ambiguous { .. } => Code::InvalidArgument,
            RegionError::Engine(error) => match error {
                EngineError::Request(_) => Code::InvalidArgument,
                EngineError::UnknownGroup(_) | EngineError::UnknownHost { .. } => Code::NotFound,
                EngineError::Internal(_) => Code::Internal,
                _ => Code::FailedPrecondition,
            },
            RegionError::NotFound { .. } => Code::NotFound,
            RegionError::Exists { .. } => Code::AlreadyExists,
            RegionError::Quota { .. } => Code::ResourceExhausted,
            RegionError::Config(_)
            | RegionError::Conflict(_)
            | RegionError::HostInUse { .. }
            | RegionError::Held
            | RegionError::NotReconcilable(_)
            | RegionError::Reclaimed(_) => Code::FailedPrecondition,
        },
        ServiceError::NotFound { .. } | ServiceError::NoSuchMarker(_) => Code::NotFound,
        ServiceError::Field { .. } | ServiceError::Advice(_) => Code::InvalidArgument,
        ServiceError::NotRead { passing: false, .. } => Code::Internal,
        ServiceError::NotWritten { passing: false, .. } => Code::FailedPrecondition,
        ServiceError::NotWritten { .. }
        | ServiceError::NotRead { .. }
        | ServiceError::NotOnDuty
        | ServiceError::Stopping
        | ServiceError::Fenced
        | ServiceError::Bus { .. }
        | ServiceError::Store { .. } => Code::Unavailable,
        ServiceError::TooSlow { .. } => Code::DeadlineExceeded,
        ServiceError::Access(error) => match error {
            AccessError::Unauthenticated | AccessError::BadToken | AccessError::NoRole { .. } => {
                Code::Unauthenticated
            }
            AccessError::TooOften { .. } | AccessError::TooManyWatchers { .. } => {
                Code::ResourceExhausted
            }
            AccessError::Forbidden { .. }
            | AccessError::OtherProject { .. }
            | AccessError::OtherHost { .. }
            | AccessError::OperatorsField { .. } => Code::PermissionDenied,
            AccessError::File { .. } | AccessError::Invalid(_) | AccessError::NoRandomness(_) => {
                Code::Internal
            }
        },
        ServiceError::Keystone(error) => match error.meaning() {
            Meaning::Unauthenticated => Code::Unauthenticated,
            Meaning::Forbidden => Code::PermissionDenied,
            Meaning::Unavailable => Code::Unavailable,
        },
        ServiceError::Plugin { .. } => Code::FailedPrecondition,
        ServiceError::OpenStackCommand { .. } | ServiceError::NotAnswerable(_) => {
            Code::Unimplemented
        }
        ServiceError::Config(_) | ServiceError::Listen { .. } | ServiceError::Rest(_) => {
            Code::Internal
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region_actor::not_read;
    use ebbtide_store::StoreError;

    #[test]
    fn a_marker_that_is_not_there_is_the_callers_and_no_failure_of_ours() {
        let error = not_read(&StoreError::NoSuchMarker {
            what: "server",
            marker: "01234567-89ab-4cde-8f01-23456789abcd".to_owned(),
        });
        assert_eq!(error.code(), "EB-STORE-011");
        assert_eq!(Status::from(error).code(), Code::NotFound);
    }
}
