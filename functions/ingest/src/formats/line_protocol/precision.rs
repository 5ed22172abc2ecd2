//! The precision of timestamps, with its names in every version of InfluxDB. Reads no line.

/// The unit of a request's timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// The unit is guessed from the size of each timestamp.
    Auto,
    Nanosecond,
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
}

impl Precision {
    /// The units in which a sender may mean a timestamp, likely ones first.
    pub(crate) const ALL: [Self; 6] = [
        Self::Second,
        Self::Millisecond,
        Self::Microsecond,
        Self::Nanosecond,
        Self::Minute,
        Self::Hour,
    ];

    /// The precision that has this name in some version of InfluxDB.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "ns" | "n" | "nanosecond" => Self::Nanosecond,
            "us" | "u" | "microsecond" => Self::Microsecond,
            "ms" | "millisecond" => Self::Millisecond,
            "s" | "second" => Self::Second,
            "m" => Self::Minute,
            "h" => Self::Hour,
            _ => return None,
        })
    }

    /// The name that every version of InfluxDB but the newest accepts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Nanosecond => "ns",
            Self::Microsecond => "us",
            Self::Millisecond => "ms",
            Self::Second => "s",
            Self::Minute => "m",
            Self::Hour => "h",
        }
    }

    /// The unit of one timestamp.
    ///
    /// `Auto` follows the rule of InfluxDB 3: a number below 5 · 10⁹ is in seconds. For each smaller unit the limit is
    /// a thousand times as high.
    pub(crate) const fn of(self, timestamp: i64) -> Self {
        match (self, timestamp.unsigned_abs() / 1_000_000_000) {
            (Self::Auto, 0..5) => Self::Second,
            (Self::Auto, 5..5_000) => Self::Millisecond,
            (Self::Auto, 5_000..5_000_000) => Self::Microsecond,
            (Self::Auto, _) => Self::Nanosecond,
            (precision, _) => precision,
        }
    }

    /// A timestamp in nanoseconds.
    pub(crate) fn nanos(self, timestamp: i64) -> i128 {
        let unit = match self.of(timestamp) {
            Self::Auto | Self::Nanosecond => 1,
            Self::Microsecond => 1_000,
            Self::Millisecond => 1_000_000,
            Self::Second => 1_000_000_000,
            Self::Minute => 60_000_000_000,
            Self::Hour => 3_600_000_000_000,
        };
        i128::from(timestamp) * unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_unit_and_auto_goes_by_size() {
        for (name, timestamp, nanos) in [
            ("ns", 1, 1),
            ("n", -1, -1),
            ("nanosecond", 1, 1),
            ("us", 1, 1_000),
            ("u", 1, 1_000),
            ("microsecond", 1, 1_000),
            ("ms", 1, 1_000_000),
            ("millisecond", 1, 1_000_000),
            ("s", 1, 1_000_000_000),
            ("second", 1, 1_000_000_000),
            ("m", 1, 60_000_000_000),
            ("h", 1, 3_600_000_000_000),
            ("auto", 4_999_999_999, 4_999_999_999_000_000_000),
            ("auto", 5_000_000_000, 5_000_000_000_000_000),
            ("auto", 5_000_000_000_000, 5_000_000_000_000_000),
            ("auto", 5_000_000_000_000_000, 5_000_000_000_000_000),
        ] {
            let precision = Precision::parse(name).expect(name);
            assert_eq!(precision.nanos(timestamp), nanos, "{name} {timestamp}");
        }
        assert_eq!(Precision::parse("d"), None);
    }
}
