#![no_main]
ebbtide_libfuzzer::program!("grpc_message");
