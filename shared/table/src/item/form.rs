//! The forms in which values are stored in attributes, such as a text, a number, a time or a list; encodes and decodes.
//! Knows no item.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Display;
use std::marker::PhantomData;
use std::str::FromStr;

use chrono::TimeDelta;
use domain::{Decimal, RoomId, TimeRange, Timestamp};
use smol_str::SmolStr;

use super::{Attribute, Group, Item, ItemError, present};

/// A form in which values of a type are stored.
pub(crate) trait Form<T> {
    /// Encodes a value; `None` for a value that is stored by leaving the attribute out.
    fn attribute(value: &T) -> Option<Attribute>;

    /// Decodes an attribute, which may be absent.
    fn value(attribute: Option<Attribute>) -> Result<T, Damage>;
}

/// Why a value cannot be read from an attribute.
#[derive(Debug)]
pub(crate) enum Damage {
    /// The attribute is not there, or has another type.
    Missing,
    /// The content of the attribute cannot be read.
    Invalid(Box<dyn Error + Send + Sync>),
    /// An attribute inside this one is damaged.
    Inner(ItemError),
}

impl Damage {
    pub(super) fn of(why: impl Error + Send + Sync + 'static) -> Self {
        Self::Invalid(Box::new(why))
    }

    /// The error of an item whose attribute of this name is damaged.
    pub(super) fn in_attribute(self, attribute: &'static str) -> ItemError {
        match self {
            Self::Missing => ItemError::Missing(attribute),
            Self::Invalid(why) => ItemError::Invalid { attribute, why },
            Self::Inner(error) => error,
        }
    }
}

/// A text, which is parsed by [`FromStr`].
pub(crate) struct Text;

impl<T: ToString + FromStr<Err: Error + Send + Sync + 'static>> Form<T> for Text {
    fn attribute(value: &T) -> Option<Attribute> {
        Some(Attribute::text(value))
    }

    fn value(attribute: Option<Attribute>) -> Result<T, Damage> {
        text(attribute)?.parse().map_err(Damage::of)
    }
}

/// A time as text. All such texts have the same width, so their order is that of time.
pub(crate) struct At;

impl Form<Timestamp> for At {
    fn attribute(at: &Timestamp) -> Option<Attribute> {
        Some(Attribute::text(at))
    }

    fn value(attribute: Option<Attribute>) -> Result<Timestamp, Damage> {
        Timestamp::parse_absolute(&text(attribute)?).map_err(Damage::of)
    }
}

/// A time in epoch seconds.
pub(crate) struct Seconds;

impl Form<Timestamp> for Seconds {
    fn attribute(at: &Timestamp) -> Option<Attribute> {
        Some(Attribute::number(at.as_millis() / 1_000))
    }

    fn value(attribute: Option<Attribute>) -> Result<Timestamp, Damage> {
        let seconds: i64 = Whole::value(attribute)?;
        Timestamp::from_millis(seconds.saturating_mul(1_000)).map_err(Damage::of)
    }
}

/// A time or a duration in milliseconds.
pub(crate) struct Millis;

impl Form<Timestamp> for Millis {
    fn attribute(at: &Timestamp) -> Option<Attribute> {
        Some(Attribute::number(at.as_millis()))
    }

    fn value(attribute: Option<Attribute>) -> Result<Timestamp, Damage> {
        Timestamp::from_millis(Whole::value(attribute)?).map_err(Damage::of)
    }
}

impl Form<TimeDelta> for Millis {
    fn attribute(time: &TimeDelta) -> Option<Attribute> {
        Some(Attribute::number(time.num_milliseconds()))
    }

    fn value(attribute: Option<Attribute>) -> Result<TimeDelta, Damage> {
        TimeDelta::try_milliseconds(Whole::value(attribute)?).ok_or(Damage::Missing)
    }
}

/// A whole number.
pub(crate) struct Whole;

impl<T: Display + FromStr<Err: Error + Send + Sync + 'static>> Form<T> for Whole {
    fn attribute(number: &T) -> Option<Attribute> {
        Some(Attribute::number(number))
    }

    fn value(attribute: Option<Attribute>) -> Result<T, Damage> {
        number(attribute)?.parse().map_err(Damage::of)
    }
}

/// A decimal number with all its digits.
pub(crate) struct Number;

impl Form<Decimal> for Number {
    fn attribute(number: &Decimal) -> Option<Attribute> {
        Some(Attribute::N(number.as_str().into()))
    }

    fn value(attribute: Option<Attribute>) -> Result<Decimal, Damage> {
        Decimal::parse(&number(attribute)?).map_err(Damage::of)
    }
}

/// Yes or no, as a person said it: 1 or 0.
pub(crate) struct Said;

impl Form<bool> for Said {
    fn attribute(is_so: &bool) -> Option<Attribute> {
        Some(Attribute::number(u8::from(*is_so)))
    }

    fn value(attribute: Option<Attribute>) -> Result<bool, Damage> {
        Ok(number(attribute)? != "0")
    }
}

/// A flag. It is set if the attribute is present, whatever its value.
pub(crate) struct ByPresence;

impl Form<bool> for ByPresence {
    fn attribute(is_so: &bool) -> Option<Attribute> {
        is_so.then(flag)
    }

    fn value(attribute: Option<Attribute>) -> Result<bool, Damage> {
        Ok(attribute.is_some())
    }
}

/// The attribute of a flag: the number 1, which takes few bytes.
pub fn flag() -> Attribute {
    Attribute::number(1)
}

/// A value that may be absent.
pub(crate) struct Maybe<F>(PhantomData<F>);

impl<T, F: Form<T>> Form<Option<T>> for Maybe<F> {
    fn attribute(value: &Option<T>) -> Option<Attribute> {
        value.as_ref().and_then(F::attribute)
    }

    fn value(attribute: Option<Attribute>) -> Result<Option<T>, Damage> {
        attribute.map(|found| F::value(Some(found))).transpose()
    }
}

/// A value whose default is not stored, such as 0 or an empty list.
pub(crate) struct OrDefault<F>(PhantomData<F>);

impl<T: Default + PartialEq, F: Form<T>> Form<T> for OrDefault<F> {
    fn attribute(value: &T) -> Option<Attribute> {
        if *value == T::default() { None } else { F::attribute(value) }
    }

    fn value(attribute: Option<Attribute>) -> Result<T, Damage> {
        attribute.map_or_else(|| Ok(T::default()), |found| F::value(Some(found)))
    }
}

/// A room; an empty text for no room.
pub(crate) struct RoomOrNone;

impl Form<Option<RoomId>> for RoomOrNone {
    fn attribute(room: &Option<RoomId>) -> Option<Attribute> {
        Some(Attribute::S(room.as_ref().map_or_else(String::new, RoomId::to_string)))
    }

    fn value(attribute: Option<Attribute>) -> Result<Option<RoomId>, Damage> {
        let text: String = Text::value(attribute)?;
        (!text.is_empty()).then(|| text.parse().map_err(Damage::of)).transpose()
    }
}

/// A list of values of one form.
pub(crate) struct Listed<F>(PhantomData<F>);

impl<C, F> Form<C> for Listed<F>
where
    C: IntoIterator + FromIterator<C::Item>,
    for<'a> &'a C: IntoIterator<Item = &'a C::Item>,
    F: Form<C::Item>,
{
    fn attribute(values: &C) -> Option<Attribute> {
        Some(listed::<F, _>(values))
    }

    fn value(attribute: Option<Attribute>) -> Result<C, Damage> {
        let Some(Attribute::L(list)) = attribute else { return Err(Damage::Missing) };
        list.into_iter().map(element::<F, _>).collect()
    }
}

/// A set of texts. An empty set is stored as absent, because DynamoDB has no empty sets.
pub(crate) struct TextSet;

impl<T: Ord + ToString + FromStr<Err: Error + Send + Sync + 'static>> Form<BTreeSet<T>>
    for TextSet
{
    fn attribute(texts: &BTreeSet<T>) -> Option<Attribute> {
        (!texts.is_empty()).then(|| Attribute::Ss(texts.iter().map(T::to_string).collect()))
    }

    fn value(attribute: Option<Attribute>) -> Result<BTreeSet<T>, Damage> {
        match attribute {
            None => Ok(BTreeSet::new()),
            Some(Attribute::Ss(texts)) => {
                texts.iter().map(|text| text.parse().map_err(Damage::of)).collect()
            }
            Some(_) => Err(Damage::Missing),
        }
    }
}

/// A map of names to values. The names have the form `N` and the values the form `F`.
pub(crate) struct ByText<N, F>(PhantomData<(N, F)>);

impl<K: Ord, V, N: Form<K>, F: Form<V>> Form<BTreeMap<K, V>> for ByText<N, F> {
    fn attribute(map: &BTreeMap<K, V>) -> Option<Attribute> {
        let member = |(name, value): (&K, &V)| match N::attribute(name)? {
            Attribute::S(name) => Some((name, F::attribute(value)?)),
            _ => None,
        };
        Some(Attribute::M(map.iter().filter_map(member).collect()))
    }

    fn value(attribute: Option<Attribute>) -> Result<BTreeMap<K, V>, Damage> {
        let member = |(name, value): (String, Attribute)| {
            Ok((N::value(Some(Attribute::S(name)))?, element::<F, _>(value)?))
        };
        members(attribute)?.into_iter().map(member).collect()
    }
}

/// A map like that of [`ByText`]. Members that cannot be read are left out.
pub(crate) struct Readable<N, F>(PhantomData<(N, F)>);

impl<K: Ord, V, N: Form<K>, F: Form<V>> Form<BTreeMap<K, V>> for Readable<N, F> {
    fn attribute(map: &BTreeMap<K, V>) -> Option<Attribute> {
        ByText::<N, F>::attribute(map)
    }

    fn value(attribute: Option<Attribute>) -> Result<BTreeMap<K, V>, Damage> {
        let member = |(name, value): (String, Attribute)| {
            Some((N::value(Some(Attribute::S(name))).ok()?, element::<F, _>(value).ok()?))
        };
        Ok(members(attribute)?.into_iter().filter_map(member).collect())
    }
}

/// A map whose members are the attributes of a group.
pub(crate) struct Members;

impl<T: Group> Form<T> for Members {
    fn attribute(group: &T) -> Option<Attribute> {
        Some(Attribute::M(present(group.attributes()).collect()))
    }

    fn value(attribute: Option<Attribute>) -> Result<T, Damage> {
        T::take(&mut members(attribute)?).map_err(Damage::Inner)
    }
}

/// A list with one element for each field of a struct. [`list!`] declares the fields in their order.
pub(crate) struct List;

impl Form<TimeRange> for List {
    fn attribute(range: &TimeRange) -> Option<Attribute> {
        Some(list_of([At::attribute(&range.from()), At::attribute(&range.to())]))
    }

    fn value(attribute: Option<Attribute>) -> Result<TimeRange, Damage> {
        let [from, to] = elements(attribute)?;
        TimeRange::new(element::<At, _>(from)?, element::<At, _>(to)?).map_err(Damage::of)
    }
}

/// Declares the fields of a struct that is stored as a list, in the order of the list. The form of each field must
/// always give an attribute, because each element needs a value.
macro_rules! list {
    ($type:ident { $($field:ident: $form:ty),+ $(,)? }) => {
        impl $crate::item::form::Form<$type> for $crate::item::form::List {
            fn attribute(value: &$type) -> Option<$crate::item::Attribute> {
                let parts = [$($crate::item::form::part::<$form, _>(&value.$field)),+];
                Some($crate::item::form::list_of(parts))
            }

            fn value(
                attribute: Option<$crate::item::Attribute>,
            ) -> Result<$type, $crate::item::form::Damage> {
                let [$($field),+] = $crate::item::form::elements(attribute)?;
                Ok($type { $($field: $crate::item::form::element::<$form, _>($field)?),+ })
            }
        }
    };
}
pub(super) use list;

pub(crate) fn part<F: Form<T>, T>(value: &T) -> Option<Attribute> {
    F::attribute(value)
}

/// A list of values of one form.
pub(crate) fn listed<'a, F: Form<T>, T: 'a>(values: impl IntoIterator<Item = &'a T>) -> Attribute {
    Attribute::L(values.into_iter().filter_map(F::attribute).collect())
}

/// A list of these elements. Absent ones are left out.
pub(super) fn list_of<const N: usize>(parts: [Option<Attribute>; N]) -> Attribute {
    Attribute::L(parts.into_iter().flatten().collect())
}

/// The elements of a list that must have exactly `N` elements.
pub(super) fn elements<const N: usize>(
    attribute: Option<Attribute>,
) -> Result<[Attribute; N], Damage> {
    match attribute {
        Some(Attribute::L(list)) => list.try_into().map_err(|_| Damage::Missing),
        _ => Err(Damage::Missing),
    }
}

/// Decodes an attribute that is present.
pub(super) fn element<F: Form<T>, T>(attribute: Attribute) -> Result<T, Damage> {
    F::value(Some(attribute))
}

pub(super) fn members(attribute: Option<Attribute>) -> Result<Item, Damage> {
    match attribute {
        Some(Attribute::M(members)) => Ok(members),
        _ => Err(Damage::Missing),
    }
}

fn number(attribute: Option<Attribute>) -> Result<SmolStr, Damage> {
    match attribute {
        Some(Attribute::N(number)) => Ok(number),
        _ => Err(Damage::Missing),
    }
}

pub(super) fn text(attribute: Option<Attribute>) -> Result<String, Damage> {
    match attribute {
        Some(Attribute::S(text)) => Ok(text),
        _ => Err(Damage::Missing),
    }
}
