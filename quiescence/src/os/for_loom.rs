//! What loom needs in code that it explores. In other builds the macros leave statics, `const`
//! functions and arrays as they are written, and [`Tracked`] and [`FenceCell`] are empty.

/// Statics, or functions that are `const`, except under loom, whose atomics and locks have no
/// `const` constructor: there each model makes a static when it first uses it.
macro_rules! const_unless_loom {
    ($($(#[$meta:meta])* $(pub($scope:ident))? static $name:ident: $type:ty = $value:expr;)+) => {
        $(
            $(#[$meta])*
            #[cfg(not(loom))]
            $(pub($scope))? static $name: $type = $value;
        )+

        #[cfg(loom)]
        loom::lazy_static! {
            $($(#[$meta])* $(pub($scope))? static ref $name: $type = $value;)+
        }
    };
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident $arguments:tt -> $type:ty $(where $of:ty: $bound:path,)? $body:block
    )+) => {
        $(
            $(#[$meta])*
            #[cfg(not(loom))]
            $vis const fn $name $arguments -> $type $(where $of: $bound)? $body

            $(#[$meta])*
            #[cfg(loom)]
            $vis fn $name $arguments -> $type $(where $of: $bound)? $body
        )+
    };
}
pub(crate) use const_unless_loom;

/// An array whose elements are made one by one, as `[const { .. }; N]`, which loom's atomics cannot
/// be in.
macro_rules! array_of {
    ($value:expr; $count:expr) => {{
        #[cfg(not(loom))]
        let array = [const { $value }; $count];
        #[cfg(loom)]
        let array: [_; $count] = std::array::from_fn(|_| $value);
        array
    }};
}
pub(crate) use array_of;

/// Shows loom the plain accesses to `N` places, so that it finds those that are not ordered. Empty
/// without loom.
#[derive(Debug)]
pub(crate) struct Tracked<const N: usize> {
    #[cfg(loom)]
    places: [loom::cell::UnsafeCell<()>; N],
}

impl<const N: usize> Tracked<N> {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                #[cfg(loom)]
                places: std::array::from_fn(|_| loom::cell::UnsafeCell::new(())),
            }
        }
    }

    #[inline(always)]
    pub(crate) fn write(&self, _place: usize) {
        #[cfg(loom)]
        self.places[_place].with_mut(|_| ());
    }

    #[inline(always)]
    pub(crate) fn read(&self, _place: usize) {
        #[cfg(loom)]
        self.places[_place].with(|_| ());
    }
}

/// Orders the fences of one reader with those of the updaters under loom; else it is empty.
///
/// Loom has no membarrier, and a model with sequentially consistent fences as both halves would
/// pass a program whose heavy fence is missing. So under loom a light fence is a read-modify-write
/// of the reader's cell, and a heavy fence is one of every cell: light and heavy are ordered both
/// ways, light and light are not.
#[derive(Debug)]
pub(crate) struct FenceCell {
    #[cfg(loom)]
    passed: loom::sync::atomic::AtomicU32,
}

impl FenceCell {
    const_unless_loom! {
        /// A cell of a reader that has executed no fence yet.
        pub(crate) fn new() -> Self {
            Self {
                #[cfg(loom)]
                passed: loom::sync::atomic::AtomicU32::new(0),
            }
        }
    }

    #[inline(always)]
    pub(super) fn pass(&self) {
        #[cfg(loom)]
        self.passed.fetch_add(1, std::sync::atomic::Ordering::AcqRel);
    }
}
