//! Macros that declare items: for each field, a form and the name of an attribute. The macros make the code that
//! encodes and decodes; no item is declared here.

use super::form::Form;
use super::{Item, ItemError};

/// Declares a kind of item: the struct, its key, and for each field the form and the attribute. The parts of the key
/// are fields of the struct, except a last part `_`: the caller then gives the key when it puts the item. `field:
/// Group` without an attribute is a [`Group`](super::Group).
macro_rules! kind {
    ($type:ident = $key:ident ($($part:ident,)* _) { $($fields:tt)+ }) => {
        $crate::item::kind::kind!(@attributes $type { $($fields)+ });
        $crate::item::kind::kind!(
            @decode $type, $crate::keys::Key::$key($($part,)* _), [$($part),*] { $($fields)+ }
        );
    };
    ($type:ident = $key:ident $(($($part:ident),+))? { $($fields:tt)+ }) => {
        impl $crate::item::Kind for $type {
            fn key(&self) -> $crate::keys::Key {
                $crate::keys::Key::$key $(($(self.$part.clone()),+))?
            }
        }
        $crate::item::kind::kind!(@attributes $type { $($fields)+ });
        $crate::item::kind::kind!(
            @decode $type, $crate::keys::Key::$key $(($($part),+))?, [$($($part),+)?] { $($fields)+ }
        );
    };
    (@attributes $type:ident { $($field:tt: $form:ty $(= $name:expr)?),+ $(,)? }) => {
        impl $crate::item::Attributes for $type {
            fn attributes(&self) -> Vec<$crate::item::NamedAttribute> {
                let fields = [$($crate::item::kind::kind!(@named &self.$field, $form $(, $name)?)),+];
                fields.into_iter().flatten().collect()
            }
        }
    };
    (@decode $type:ident, $key:pat, [$($part:ident),*] {
        $($field:tt: $form:ty $(= $name:expr)?),+ $(,)?
    }) => {
        impl $crate::item::FromItem for $type {
            fn from_item(
                mut item: $crate::item::Item,
            ) -> Result<Self, $crate::item::ItemError> {
                let $key = $crate::item::fields::parse_key(&item)? else {
                    return Err($crate::item::fields::other_kind(&item));
                };
                Ok(Self {
                    $($part,)*
                    $($field: $crate::item::kind::kind!(@take &mut item, $form $(, $name)?),)+
                })
            }
        }
    };
    (@named $value:expr, $form:ty, $name:expr) => {
        vec![($name, $crate::item::form::part::<$form, _>($value))]
    };
    (@named $value:expr, $group:ty) => {
        $crate::item::Attributes::attributes($value)
    };
    (@take $item:expr, $form:ty, $name:expr) => {
        $crate::item::kind::take::<$form, _>($item, $name)?
    };
    (@take $item:expr, $group:ty) => {
        <$group as $crate::item::Group>::take($item)?
    };
}
pub(super) use kind;

/// Declares a [`Group`](super::Group): for each field of the struct its form and its attribute, or another group.
macro_rules! group {
    ($type:ident { $($field:ident: $form:ty $(= $name:expr)?),+ $(,)? }) => {
        $crate::item::kind::kind!(@attributes $type { $($field: $form $(= $name)?),+ });

        impl $crate::item::Group for $type {
            fn take(item: &mut $crate::item::Item) -> Result<Self, $crate::item::ItemError> {
                Ok(Self { $($field: $crate::item::kind::kind!(@take item, $form $(, $name)?)),+ })
            }
        }
    };
}
pub(super) use group;

/// Takes a value out of an item.
pub(super) fn take<F: Form<T>, T>(item: &mut Item, name: &'static str) -> Result<T, ItemError> {
    F::value(item.remove(name)).map_err(|damage| damage.in_attribute(name))
}
