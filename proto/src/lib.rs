//! The gRPC contracts of Ebbtide and the Rust generated from them.
//!
//! The contracts are `proto/ebbtide/v1/*.proto`; their comments are the reference for every call
//! and field. Only additive changes are made within `v1`.

/// Version 1 of the API.
#[allow(unreachable_pub, clippy::all, clippy::pedantic)]
pub mod v1 {
    tonic::include_proto!("ebbtide.v1");

    /// All contracts in encoded form, for server reflection.
    pub const DESCRIPTORS: &[u8] =
        include_bytes!(concat!(env!("OUT_DIR"), "/ebbtide_descriptor.bin"));
}

/// Plugins that are services of their own.
pub mod plugin {
    /// Version 1 of what they are asked.
    #[allow(unreachable_pub, clippy::all, clippy::pedantic)]
    pub mod v1 {
        tonic::include_proto!("ebbtide.plugin.v1");
    }
}

/// Highest size of one gRPC message in either direction: a decision over a thousand instances with
/// its explanation.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;
