//! Declares enumerations whose values have one word each. Knows no word.

/// Declares an enumeration whose values have one word each, as the table and the API write them.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(serde::Serialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $value,)+
        }

        impl $name {
            /// All values, in their order.
            pub const ALL: [Self; [$($word),+].len()] = [$(Self::$value),+];
            /// The words of all values.
            pub const WORDS: [&'static str; Self::ALL.len()] = [$($word),+];

            /// The word of the value.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)+
                }
            }

            /// The value of a word.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.as_str() == text)
            }
        }
    };
}
