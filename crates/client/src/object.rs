//! JSON objects as structs that lose nothing: fields that a struct doesn't know are kept beside those it does.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::UnitDeserializer;

use crate::value::Json;

/// The fields of an object that this crate doesn't know, in the order in which they came, to the letter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields(pub(crate) Vec<(String, Json)>);

impl Fields {
    /// The value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.iter()
            .find_map(|(key, value)| (key == name).then_some(value))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A key of an object, borrowed where it can be.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct MemberName<'k>(#[serde(borrow)] pub(crate) Cow<'k, str>);

/// What a field is that isn't there: `None`, where its type has that, else a fault.
pub(crate) fn missing<'de, T: Deserialize<'de>, E: serde::de::Error>(
    name: &'static str,
) -> Result<T, E> {
    T::deserialize(UnitDeserializer::<E>::new()).map_err(|_| E::missing_field(name))
}

/// Makes a struct whose fields are an object's members, in the order in which they are written again.
///
/// `field ("name")` is a member with another name; `field [absent]` isn't written where it is `None`.
macro_rules! object {
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
    (@write $map:ident, $name:expr, $value:expr) => { $map.serialize_entry($name, $value)?; };
    (@write $map:ident, $name:expr, $value:expr, absent) => {
        if let Some(value) = $value { $map.serialize_entry($name, value)?; }
    };
    ($(#[$meta:meta])* $object:ident $(<$content:ident = $usual:ty>)? {
        $($(#[$field_meta:meta])* $field:ident $(($name:literal))? $([$absent:ident])?: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $object $(<$content = $usual>)? {
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
