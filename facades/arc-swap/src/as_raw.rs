use crate::{Guard, RefCnt};

mod sealed {
    pub trait Sealed {}
}
use sealed::Sealed;

/// What [`compare_and_swap`](crate::ArcSwapAny::compare_and_swap) compares with: a reference to a
/// pointer, a guard or a reference to one, or an address.
pub trait AsRaw<T>: Sealed {
    /// The address.
    fn as_raw(&self) -> *mut T;
}

macro_rules! counted {
    ($($pointer:ty)*) => {$(
        impl<T: RefCnt> Sealed for $pointer {}
        impl<T: RefCnt> AsRaw<T::Base> for $pointer {
            fn as_raw(&self) -> *mut T::Base {
                T::as_ptr(self)
            }
        }
    )*};
}

counted!(&T &Guard<T> Guard<T>);

impl<T> Sealed for *mut T {}
impl<T> AsRaw<T> for *mut T {
    fn as_raw(&self) -> *mut T {
        *self
    }
}

impl<T> Sealed for *const T {}
impl<T> AsRaw<T> for *const T {
    fn as_raw(&self) -> *mut T {
        self.cast_mut()
    }
}
