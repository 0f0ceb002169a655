//! Types of domains other than the global one: those made at run time, and those declared with
//! [`domain!`](crate::domain!).

use std::panic::Location;
use std::sync::Arc;

use crate::domain::guard::{Guard, ThreadTag};
use crate::domain::tag::DomainTag;
use crate::reclaim::domain_state::{DomainState, Handle, Named};

/// The tag of domains made at run time with [`Domain::new`](crate::Domain::new).
#[derive(Clone, Debug)]
pub struct Private(pub(crate) Arc<DomainState>);

impl Named for Private {
    fn core(&self) -> &DomainState {
        &self.0
    }

    fn handle(&self) -> Handle {
        Handle::Shared(Arc::clone(&self.0))
    }
}

// SAFETY: clones of an `Arc` lead to the same place.
unsafe impl DomainTag for Private {
    const STATIC: bool = false;

    type Section<'k> = Guard<'k, Self>;

    #[inline]
    fn enter(&self, place: &'static Location<'static>) -> Guard<'_, Self> {
        Guard::begin(self, place)
    }
}

// SAFETY: `Domain::new` and `Builder` give it no other engine.
unsafe impl ThreadTag for Private {}

/// Declares a type that names a domain, which lives as long as the program.
///
/// Its guards and data cannot be used with those of another domain: the compiler rejects it.
/// `Domain::of(Name)` returns the domain.
///
/// ```
/// use quiescence::{Domain, Rcu};
///
/// quiescence::domain! {
///     /// Zone data: its readers never wait for those of the routing table.
///     pub struct Zones;
/// }
///
/// let zones = Domain::of(Zones);
/// let serial = Rcu::new_in(7, zones);
/// assert_eq!(*serial.load(&zones.read()), 7);
/// ```
///
/// A guard of another domain is rejected:
/// ```compile_fail,E0277
/// use quiescence::{Domain, Rcu};
/// quiescence::domain! { struct Zones; }
/// let serial = Rcu::new_in(7, Domain::of(Zones));
/// let guard = quiescence::read(); // of the global domain
/// serial.load(&guard);
/// ```
#[macro_export]
macro_rules! domain {
    ($(#[$meta:meta])* $vis:vis struct $name:ident;) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        $vis struct $name;

        const _: () = {
            static CORE: $crate::__private::DomainState =
                $crate::__private::new_core(stringify!($name));

            impl $crate::__private::Named for $name {
                #[inline]
                fn core(&self) -> &$crate::__private::DomainState {
                    &CORE
                }

                fn handle(&self) -> $crate::__private::Handle {
                    $crate::__private::Handle::Static(&CORE)
                }
            }

            // SAFETY: one static.
            unsafe impl $crate::tag::DomainTag for $name {
                const STATIC: bool = true;

                type Section<'k> = $crate::Guard<'k, Self>;

                #[inline]
                fn enter(
                    &self,
                    place: &'static ::core::panic::Location<'static>,
                ) -> $crate::Guard<'_, Self> {
                    $crate::__private::begin(self, place)
                }
            }

            // SAFETY: its readers are threads.
            unsafe impl $crate::tag::ThreadTag for $name {}
        };
    };
}
