//! One decision about an entry, at one moment.

/// What is to become of an entry: what the function returns that is passed to
/// [`HashMapRef::compute`](super::HashMapRef::compute).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<V, T = ()> {
    /// The key is to have this value.
    Insert(V),
    /// The key is not to be there.
    Remove,
    /// Nothing is to change; the value is handed to the caller.
    Abort(T),
}

/// What has become of an entry. Each is a pair of references to key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compute<'s, K, V, T = ()> {
    /// The key is new.
    Inserted(&'s K, &'s V),
    /// The key had another value before.
    Updated {
        /// The entry that was replaced.
        old: (&'s K, &'s V),
        /// The entry in its place.
        new: (&'s K, &'s V),
    },
    /// The key was there, and is not any more.
    Removed(&'s K, &'s V),
    /// Nothing has changed: by [`Operation::Abort`].
    Aborted(T),
    /// Nothing has changed: a key was to be removed that is not there.
    Absent,
}
