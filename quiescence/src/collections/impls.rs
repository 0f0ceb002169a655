//! Implementations that collections share: of the standard library's traits, and of a view, which
//! is a collection with a section.

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

/// How a collection with a hasher is made of items, and of an array of them.
macro_rules! collected {
    ([$($bounds:tt)*] $type:ident<$($of:ident),+>, $item:ty) => {
        impl<$($bounds)*, S: BuildHasher + Default> FromIterator<$item> for $type<$($of),+, S> {
            fn from_iter<I: IntoIterator<Item = $item>>(items: I) -> Self {
                let items = items.into_iter();
                // Half of them, as in `extend`.
                let room = items.size_hint().0.div_ceil(2);
                let collection = Self::with_capacity_and_hasher(room, S::default());
                collection.extend(items);
                collection
            }
        }

        impl<$($bounds)*, const N: usize> From<[$item; N]> for $type<$($of),+> {
            fn from(items: [$item; N]) -> Self {
                items.into_iter().collect()
            }
        }
    };
}

/// What a `for` loop goes over: what `iter` gives.
macro_rules! iterated {
    ([$($generics:tt)*] $reference:ty, $item:ty, $iter:ty) => {
        impl<$($generics)*> IntoIterator for $reference {
            type Item = $item;
            type IntoIter = $iter;

            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }
    };
}

/// How a collection is shown: as all that is in it.
macro_rules! shown_as_all {
    ([$($generics:tt)*] $type:ty, $shape:ident, |$this:ident| $all:expr) => {
        impl<$($generics)*> fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $this = self;
                f.$shape().entries($all).finish()
            }
        }
    };
}

/// A view: it leads to its collection, and is a section, as one of its fields is.
macro_rules! view {
    (
        [$($generics:tt)*] $view:ty, $collection:ident: $target:ty,
        $section:ident: Section<$domain:ident> $(where $($bound:tt)+)?
    ) => {
        impl<$($generics)*> std::ops::Deref for $view {
            type Target = $target;

            fn deref(&self) -> &Self::Target {
                self.$collection
            }
        }

        // SAFETY: it has a section of the domain, which lasts as long.
        unsafe impl<$($generics)*> Section<$domain> for $view $(where $($bound)+)? {
            #[inline(always)]
            fn core(&self) -> *const crate::reclaim::domain_state::DomainState {
                Section::<$domain>::core(&self.$section)
            }
        }
    };
}

pub(super) use {collected, extended, iterated, shown_as_all, view};
