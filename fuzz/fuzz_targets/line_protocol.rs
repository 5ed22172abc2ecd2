//! Line protocol by random bytes: reading and mapping keep their invariants. Compiles ingest's own files.
#![no_main]

/// The files of ingest that the target is about.
#[path = "../../functions/ingest/src/formats"]
#[allow(dead_code, unused_imports, reason = "ingest uses more of them")]
mod formats {
    pub(crate) mod line_invariants;
    pub(crate) mod line_protocol;
    pub(crate) mod units;
    pub(crate) mod vocabulary;
}

libfuzzer_sys::fuzz_target!(|body: &[u8]| formats::line_invariants::hold(body));
