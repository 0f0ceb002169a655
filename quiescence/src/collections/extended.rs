//! `Extend`, of collections that values come into by a shared reference.

/// `Extend` of a collection and of a shared reference to it, by what extends it through the latter.
macro_rules! extended {
    (
        $(#[$about:meta])*
        [$($generics:tt)*] $type:ty, $item:ty, |$this:ident, $items:ident| $extend:expr
    ) => {
        $(#[$about])*
        impl<$($generics)*> Extend<$item> for &$type {
            fn extend<I: IntoIterator<Item = $item>>(&mut self, $items: I) {
                let $this = *self;
                $extend;
            }
        }

        impl<$($generics)*> Extend<$item> for $type {
            fn extend<I: IntoIterator<Item = $item>>(&mut self, items: I) {
                (&*self).extend(items);
            }
        }
    };
}
pub(super) use extended;
