//! Nature Remo: its sensors, and the smart meter of a Remo E.
//!
//! Source: <https://developer.nature.global/>. All programs of an account may make 30 requests in 5 minutes together.
//! The headers `X-Rate-Limit-*` say how many are left.

use chrono::TimeDelta;

use crate::budget::Budget;
use crate::kind::{PLAIN, SourceKind, SourceMember, SourceMemberForm};

pub(super) const REMO: SourceKind = SourceKind {
    name: "remo",
    title: "Nature Remo",
    hint: "home.nature.global makes a token. The token can also switch appliances.",
    members: &[
        SourceMember::secret("token", "the access token"),
        SourceMember::optional(
            "meter",
            "whether there is a smart meter, which is a second request",
            SourceMemberForm::Flag,
        ),
    ],
    every: TimeDelta::minutes(1),
    has_meter: true,
    // Half of the maker's limit: any 5 minutes overlap at most two periods, and so have at most 30 requests.
    budget: Some(Budget { requests: 15, per: TimeDelta::minutes(5) }),
    reserve: Some(6),
    recipe: r#"[
        {"url": "https://api.nature.global/1/devices", "headers": {"authorization": "Bearer {token}"}, "format": "remo"},
        {"url": "https://api.nature.global/1/appliances", "headers": {"authorization": "Bearer {token}"},
         "format": "remo", "only": "/smart_meter", "if": "meter"}
    ]"#,
    ..PLAIN
};
