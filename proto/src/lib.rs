//! The gRPC contracts of Ebbtide and the Rust generated from them.
