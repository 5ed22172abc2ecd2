//! Any address that answers JSON. The source itself has the request, and says how its answer is read.

use crate::kind::{PLAIN, SourceKind};

pub(super) const JSON: SourceKind = SourceKind {
    name: "json",
    title: "The address",
    hint: "The documentation of the API says which address answers JSON, and which header or parameter has the key.",
    ..PLAIN
};
