#![no_main]
ebbtide_libfuzzer::program!("job_trace");
