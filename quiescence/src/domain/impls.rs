//! Implementations that several types share; and how a refusal is shown.

use std::fmt;

use crate::gp::grace_periods::GracePeriods;
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::free::AtLimit;

/// What a panic of user code leaves whole: none is called between two steps of a change [UC-3].
impl std::panic::RefUnwindSafe for DomainState {}
impl std::panic::RefUnwindSafe for crate::gp::slot::Slot {}

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
    ($type:ident<$value:ident: $($bound:path),* $(; $life:lifetime)?>, $new:ident) => {
        impl<$value: $($bound +)* $($life)?> From<$value> for $type<$value> {
            fn from(value: $value) -> Self {
                Self::$new(value)
            }
        }

        impl<$value: $($bound +)* Default $(+ $life)?> Default for $type<$value> {
            fn default() -> Self {
                Self::$new($value::default())
            }
        }
    };
}
pub(crate) use made_of_value;

/// `Default`, of a type that `$make` makes of nothing.
macro_rules! default_by {
    ($make:ident, $($header:tt)+) => {
        $($header)+ {
            fn default() -> Self {
                Self::$make()
            }
        }
    };
}
pub(crate) use default_by;

/// How a type is shown of which users see a part: by its name, and these fields.
macro_rules! shown_in_part {
    (
        [$($generics:tt)*] $type:ident $(<$($argument:tt),+>)?
        $({ $($field:ident: |$this:ident| $value:expr),+ })?
    ) => {
        impl<$($generics)*> std::fmt::Debug for $type $(<$($argument),+>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type))
                    $($(.field(stringify!($field), &{ let $this = self; $value }))+)?
                    .finish_non_exhaustive()
            }
        }
    };
}
pub(crate) use shown_in_part;

// Not derived: that would read the slots' cells, which belong to other threads.
shown_in_part!([] GracePeriods { sequence: |own| own.sequence() });
shown_in_part!([] DomainState { grace_periods: |own| &own.grace_periods });

shown_in_part!([P: Send + 'static] AtLimit<P> { why: |refused| refused.to_string() });

impl<P: Send + 'static> fmt::Display for AtLimit<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the domain's limit is reached, and here nothing may wait for a grace period: retire \
             outside of sections, or raise objects_max and bytes_max in the domain's Tuning",
        )
    }
}

impl<P: Send + 'static> std::error::Error for AtLimit<P> {}
