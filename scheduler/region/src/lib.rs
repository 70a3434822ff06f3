//! The pure state machine of a region: servers, claims, evacuations; inputs in, changes and messages out
