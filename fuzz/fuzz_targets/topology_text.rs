#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| mingle_fuzz::topology::check(input));
