//! Enums of names that programs rely on.

/// Enum of names, each in the contract's spelling.
pub trait Named: Copy + 'static {
    /// All values, in the contract's order.
    const ALL: &'static [Self];

    /// Returns the value in the contract's spelling.
    fn as_str(self) -> &'static str;
}

/// Defines an enum of names.
#[macro_export]
macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        pub enum $name { $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// All values, in the contract's order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the value in the contract's spelling.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl $crate::names::Named for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn as_str(self) -> &'static str {
                self.as_str()
            }
        }
    };
}
