#![no_main]
ebbtide_libfuzzer::program!("plugin_answer");
