//! JSON objects as structs that keep unknown fields.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::UnitDeserializer;

use crate::value::Json;

/// Fields of an object that this crate doesn't know, in their original order, byte for byte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(pub(crate) Vec<(String, Json)>);

impl Fields {
    /// Returns the value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.iter()
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    /// Iterates over names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns true if there are no fields.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A key of an object, borrowed if possible.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct MemberName<'k>(#[serde(borrow)] pub(crate) Cow<'k, str>);

/// Returns the value of a missing field: `None` if the type allows that, otherwise an error.
pub(crate) fn missing<'de, T: Deserialize<'de>, E: serde::de::Error>(
    name: &'static str,
) -> Result<T, E> {
    T::deserialize(UnitDeserializer::<E>::new()).map_err(|_| E::missing_field(name))
}

/// Defines a struct with an object's members, in the order in which they are serialised.
///
/// `field ("name")` has another name in JSON; `field [absent]` is omitted if it is `None`.
macro_rules! object {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@write $map:ident, $name:expr, $value:expr) => { $map.serialize_entry($name, $value)?; };
    (@write $map:ident, $name:expr, $value:expr, absent) => {
        if let Some(value) = $value { $map.serialize_entry($name, value)?; }
    };
    ($(#[$meta:meta])* $object:ident $(<$content:ident = $default:ty>)? {
        $($(#[$field_meta:meta])* $field:ident $(($name:literal))? $([$absent:ident])?: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $object $(<$content = $default>)? {
            $($(#[$field_meta])* pub $field: $type,)*
            /// Fields that this crate doesn't know.
            pub other: $crate::object::Fields,
        }

        impl<'de $(, $content: serde::Deserialize<'de>)?> serde::Deserialize<'de> for $object $(<$content>)? {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Reader<T>(std::marker::PhantomData<T>);

                impl<'de $(, $content: serde::Deserialize<'de>)?> serde::de::Visitor<'de>
                    for Reader<$object $(<$content>)?>
                {
                    type Value = $object $(<$content>)?;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: serde::de::MapAccess<'de>>(
                        self,
                        mut map: A,
                    ) -> Result<Self::Value, A::Error> {
                        $(let mut $field: Option<$type> = None;)*
                        let mut other = Vec::new();
                        while let Some($crate::object::MemberName(name)) = map.next_key()? {
                            $(if name == object!(@name $field $($name)?) {
                                $field = Some(map.next_value()?);
                                continue;
                            })*
                            other.push((name.into_owned(), map.next_value()?));
                        }
                        Ok($object {
                            $($field: match $field {
                                Some(value) => value,
                                None => $crate::object::missing(object!(@name $field $($name)?))?,
                            },)*
                            other: $crate::object::Fields(other),
                        })
                    }
                }

                deserializer.deserialize_map(Reader::<Self>(std::marker::PhantomData))
            }
        }

        impl $(<$content: serde::Serialize>)? serde::Serialize for $object $(<$content>)? {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap as _;
                let mut map = serializer.serialize_map(None)?;
                $(object!(@write map, object!(@name $field $($name)?), &self.$field $(, $absent)?);)*
                for (name, value) in self.other.iter() {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    };
}

pub(crate) use object;
