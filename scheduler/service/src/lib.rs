//! The scheduler service: gRPC front door, region, store, outbox, metrics
