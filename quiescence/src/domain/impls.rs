//! Implementations that several types share.

/// How a guard is shown: as what it leads to.
macro_rules! shown_as_target {
    ($($header:tt)+) => {
        $($header)+ {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
}
pub(crate) use shown_as_target;

/// `From` a value, and `Default`, of a type that `$new` makes of a value with these bounds.
macro_rules! made_of_value {
    ($type:ident<$value:ident: $($bound:path),*>, $new:ident) => {
        impl<$value: $($bound +)*> From<$value> for $type<$value> {
            fn from(value: $value) -> Self {
                Self::$new(value)
            }
        }

        impl<$value: $($bound +)* Default> Default for $type<$value> {
            fn default() -> Self {
                Self::$new($value::default())
            }
        }
    };
}
pub(crate) use made_of_value;
