//! How much memory a value owns, and what it is charged with the library's own memory while it
//! waits: what the limit in bytes counts. An error here charges too much or too little.

mod owners;

pub(crate) use owners::{all, owns};

use std::fmt;
use std::sync::atomic::Ordering::Relaxed;

use grace::limit::Amount;

use crate::os::user_code::{Site, caught};
use crate::reclaim::domain_state::DomainState;
use crate::reclaim::free::{Address, Closure, Counted, Pointee, Value};
use crate::reclaim::retire::Retire;
use crate::reclaim::stream::{Word, fits, words};

/// Reports how much memory a value owns: how much it counts against its domain's limit in bytes
/// while it waits for a grace period. [`Rcu`](crate::Rcu) and [`RcuOption`](crate::RcuOption)
/// require it.
///
/// The standard library's data, collections, locks, files, and sockets of TCP and UDP implement it,
/// and so do this library's domains, maps and lists, cells, counters, locks and settings. (A
/// [`Queue`](crate::collections::Queue), a [`Stack`](crate::collections::Stack), an
/// [`ExactCell`](crate::cell::ExactCell) and a [`BigRef`](crate::sync::BigRef) do not: a look at
/// what they own may take long, or keep others from it.) For a type of your own, derive it:
/// ```
/// use quiescence::{Rcu, Weigh};
///
/// #[derive(Weigh)]
/// struct Table {
///     name: String,
///     rows: Vec<[u64; 8]>,
///     version: u64,
/// }
///
/// let table = Rcu::new(Table { name: "routes".into(), rows: vec![[0; 8]; 1000], version: 1 });
/// let now = quiescence::read();
/// assert!(table.load(&now).weight() >= 64_000);
/// ```
///
/// The derive adds up what the fields of a struct or enum own; each type parameter must implement
/// `Weigh`, too. A field that is a function pointer, of whatever type, owns nothing; in a `Vec`, a
/// map or an `Option`, one that takes a reference needs a struct of its own:
/// ```
/// # use quiescence::Weigh;
/// #[derive(Weigh)]
/// struct Handler(fn(&str) -> String);
///
/// #[derive(Weigh)]
/// struct Routes(Vec<(String, Handler)>);
/// ```
/// (A `repr(packed)` type with an unaligned field cannot be derived.) The derive names this crate
/// `::quiescence`: if `Cargo.toml` has it under another name, write `extern crate NAME as
/// quiescence;` in the crate's root.
///
/// To implement it by hand, define [`owned`](Self::owned), or write `impl Weigh for Type {}` for a
/// type that owns nothing outside of itself. For a foreign type, pass a function to
/// [`Rcu::with_weight`](crate::Rcu::with_weight) instead. For objects behind a `dyn Trait` of your
/// own, implement it for the trait object: `impl Weigh for dyn Trait { ... }`.
///
/// # When it is called
/// Once for each value that is replaced, after the value was unlinked, by the thread that replaced
/// it; other threads may still be reading the value. The result is kept with the value until it is
/// freed, so it need not be the same each time. An update that does not wait for room calls the
/// method once more beforehand, inside a section, for an estimate. **A panic** in it is reported by
/// the panic hook, counted ([`Statistics::callbacks_panicked`](crate::report::Statistics)), and
/// caught: the value then counts as its [`size_of_val`], and nothing is lost.
///
/// # What is counted
/// The bytes requested from the allocator, without the allocator's overhead; an estimate if the
/// number is not known. Shared memory counts as 0: an [`Arc`](std::sync::Arc) that is not the last
/// one, and references. Of these, `&str`, `&[T]`, `&CStr`, `&OsStr` and `&Path` implement `Weigh`;
/// a type with any other reference implements it by hand, and so does one with a
/// [`LazyLock`](std::sync::LazyLock), which does not say whether it has a value. A
/// [`Mutex`](std::sync::Mutex) that is locked at that moment counts as empty.
///
/// Values in an [`Rcu`](crate::Rcu), an [`RcuOption`](crate::RcuOption), or a map or list of this
/// library count when they are replaced or removed there. They do not if a value that waits owns
/// the cell or the collection itself: that counts with its own memory, an
/// [`IdMap`](crate::collections::IdMap) with none.
///
/// # Cost
/// A collection is iterated over if its elements own memory ([`OWNS`](Self::OWNS)); otherwise its
/// weight takes a few instructions, however many elements there are. Nested owners nest the
/// iteration; for a recursive type the method recurses.
///
/// Source of the idea: `MallocSizeOf` of Servo, and the kernel's `kvfree_call_rcu`, which has to
/// count the pages waiting to be freed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how much memory it owns: put `#[derive(quiescence::Weigh)]` \
               above it",
    label = "does not implement `Weigh`, which the limit of what waits counts by",
    note = "put `#[derive(quiescence::Weigh)]` above the type: it adds up what the fields own",
    note = "by hand: `impl Weigh` for the struct with such a field, or `impl Weigh for dyn Trait`",
    note = "else `Rcu::with_weight(value, |value| bytes)`, `HashMap::builder().build_with_weight`"
)]
pub trait Weigh {
    /// Whether any value of this type owns memory outside of itself. If it is `false`,
    /// [`owned`](Self::owned) need not be called, and collections of such values are not iterated
    /// over.
    const OWNS: bool = true;

    /// The bytes that the value owns outside of itself; 0 by default.
    fn owned(&self) -> usize {
        0
    }

    /// The bytes of the value itself plus those that it owns.
    fn weight(&self) -> usize {
        size_of_val(self).saturating_add(self.owned())
    }
}

/// How the values of one place are weighed. (A function, since what retires them does not know
/// their `Weigh`.)
pub(crate) struct Scale<T>(Option<fn(&T) -> usize>);

impl<T> Clone for Scale<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Scale<T> {}

impl<T> fmt::Debug for Scale<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Scale::By" } else { "Scale::Size" })
    }
}

impl<T> Scale<T> {
    /// By [`Weigh`].
    pub(crate) const fn new() -> Self
    where
        T: Weigh,
    {
        if T::OWNS { Self(Some(T::weight)) } else { Self(None) }
    }

    /// By a function.
    pub(crate) const fn by(weight: fn(&T) -> usize) -> Self {
        Self(Some(weight))
    }

    /// What all boxes `B` of a value are charged, if they all weigh the same.
    #[inline(always)]
    pub(crate) const fn constant<B>(self) -> Option<usize> {
        if self.by_size() { Some(charge_of_box::<B>(size_of::<B>())) } else { None }
    }

    /// Whether all values weigh their size.
    #[inline(always)]
    pub(crate) const fn by_size(self) -> bool {
        self.0.is_none()
    }

    /// What a box `B` of this value is charged: see [`weight`](Self::weight).
    #[inline]
    pub(crate) fn charge<B>(self, domain: &DomainState, value: &T) -> usize {
        let around = size_of::<B>() - size_of::<T>();
        charge_of_box::<B>(self.weight(domain, value).saturating_add(around))
    }

    /// What this value weighs: its size at least. A panic of the user's function ends here.
    #[inline]
    pub(crate) fn weight(self, domain: &DomainState, value: &T) -> usize {
        match self.0 {
            None => size_of::<T>(),
            Some(weight) => ask(domain, || weight(value)).max(size_of::<T>()),
        }
    }
}

// ---- charges ------------------------------------------------------------------------------------

/// Bytes of `words` words of a stream: the library's own memory for a callback that waits, which is
/// charged, too.
pub(crate) const fn held(words: usize) -> usize {
    words * size_of::<Word>()
}

/// The same for a callback, with its kind, and its box if it is too large for a stream.
pub(crate) const fn held_by<P>() -> usize {
    if fits::<P>() { held(1 + words::<P>()) } else { held(1) + size_of::<P>() }
}

/// What a boxed object of this weight is charged: its weight and its words in the stream, which are
/// one if its weight is its size, else three (kind, pointer, charge).
#[inline(always)]
pub(crate) const fn charge_of_box<T>(weight: usize) -> usize {
    weight.saturating_add(held(if weight == size_of::<T>() { 1 } else { 3 }))
}

impl<P: Pointee> Address<P> {
    /// The charge of an object whose weight is its size.
    pub(crate) const CHARGE: u64 = Self::charge(size_of::<P::Object>());

    /// The charge of an object of this weight.
    #[inline(always)]
    pub(crate) const fn charge(weight: usize) -> u64 {
        let around = P::BYTES - size_of::<P::Object>();
        charge_of_box::<P::Object>(weight).saturating_add(around) as u64
    }
}

impl<P: Retire> Value<P> {
    /// The library's own memory for a value that waits.
    pub(crate) const HELD: usize = if Self::BARE { held(1) } else { held_by::<Counted<P>>() };
}

impl<F> Closure<F> {
    /// The charge of a closure: what it captures, and the library's words.
    pub(crate) const AMOUNT: Amount = Amount::object(held_by::<F>() as u64);
}

// ---- user code ----------------------------------------------------------------------------------

#[cold]
#[inline(never)]
fn panicked(domain: &DomainState) {
    domain.grace_periods.counters().callbacks_panicked.fetch_add(1, Relaxed); // a statistic
}

/// What a function of the user's says; nothing, if it panics.
#[inline(never)] // what calls it often has nothing to ask
pub(crate) fn ask(domain: &DomainState, weight: impl FnOnce() -> usize) -> usize {
    let mut bytes = 0;
    if !caught(Site::Weigh, || bytes = weight()) {
        panicked(domain);
    }
    bytes
}
