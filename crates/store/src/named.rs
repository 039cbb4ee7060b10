//! Enums whose variants have names.

/// Makes an enum with `ALL` and `as_str` from variants and their names.
macro_rules! named {
    (
        $(#[$of:meta])*
        pub enum $Enum:ident { $($(#[$doc:meta])* $Variant:ident = $name:literal,)* }
    ) => {
        $(#[$of])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $Enum {
            $($(#[$doc])* #[doc = concat!("\n\nIts name is `", $name, "`.")] $Variant,)*
        }

        impl $Enum {
            /// All of them.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$Variant),*];

            /// Returns its name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $name,)*
                }
            }
        }
    };
}
pub(crate) use named;
